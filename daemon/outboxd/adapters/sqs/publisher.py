"""A queue as a destination of the relay."""

import logging
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from outboxd.adapters.aws.batches import results_of
from outboxd.adapters.aws.outages import AWS_ERRORS, code_of, outage
from outboxd.adapters.sqs.client import sqs_client
from outboxd.adapters.sqs.entries import LIMITS, sqs_entry
from outboxd.core.destinations import SqsTarget, target_of
from outboxd.core.errors import OutageKind, Unavailable
from outboxd.core.outbox import StoredEvent
from outboxd.core.outgoing import oversize
from outboxd.core.packing import PackLimits
from outboxd.core.relay_outcomes import EntryResult, Refused
from outboxd.core.relay_rules import longest_call_seconds
from outboxd.core.routes import RouteTable
from outboxd.core.settings import Envelope, Settings, is_fifo
from outboxd.ports.destination import Entry, PackRefused

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient
    from types_boto3_sqs.type_defs import SendMessageBatchRequestEntryTypeDef

log = logging.getLogger(__name__)

_CONTENT_ERRORS = frozenset(
    {
        "BatchRequestTooLong",
        "TooManyEntriesInBatchRequest",
        "InvalidMessageContents",
        "InvalidParameterValue",
    }
)
"""Codes that refuse a whole call for what is in it."""


def sqs_destinations(settings: Settings) -> dict[str, "SqsDestination"]:
    """Every queue that the routes name, by its name there, on one client.

    Its calls are single attempts: a repetition by the SDK would be a duplicate that nobody counts,
    and could reach SQS after the lease has run out.
    """
    if settings.relay is None:
        return {}
    targets = {
        name: target
        for name in RouteTable(settings.relay.routes).destinations
        if isinstance(target := target_of(name, settings), SqsTarget)
    }
    if not targets:
        return {}
    client = sqs_client(
        settings.aws, connections=settings.relay.packs_in_flight * len(targets), attempts=1
    )
    return {
        name: SqsDestination(
            client,
            target.queue_name,
            longest_call_seconds(settings),
            fair_groups=target.fair_groups,
            cloudevents_source=settings.relay.cloudevents_source,
        )
        for name, target in targets.items()
    }


class SqsDestination:
    """Sends to one queue, which it looks up by name before its first call and after an outage."""

    def __init__(
        self,
        client: "SQSClient",
        queue_name: str,
        call_seconds: float,
        *,
        fair_groups: bool = False,
        cloudevents_source: str = "outboxd",
    ) -> None:
        """`call_seconds`: what the client's timeouts for connecting and writing add up to.
        `fair_groups`: messages of a standard queue have their aggregate as a group."""
        self._client = client
        self._queue_name = queue_name
        self._call_seconds = call_seconds
        self._fifo = is_fifo(queue_name)
        self._fair_groups = fair_groups
        self._cloudevents_source = cloudevents_source
        self._looking_up = threading.Lock()
        self._queue_url: str | None = None
        self._limits = LIMITS

    @property
    def limits(self) -> PackLimits:
        """SQS's own limits, and once it has been looked up those of the queue."""
        return self._limits

    @property
    def call_seconds(self) -> float:
        return self._call_seconds

    def prepare(self, event: StoredEvent, envelope: Envelope) -> Entry | Refused:
        entry = sqs_entry(
            event,
            envelope,
            fifo=self._fifo,
            fair=self._fair_groups,
            source=self._cloudevents_source,
        )
        if isinstance(entry, Entry) and entry.size > self._limits.entry_bytes:
            return oversize(entry.size, self._limits.entry_bytes)
        return entry

    def open(self) -> None:
        with self._looking_up:
            if self._queue_url is not None:
                return
            try:
                queue_url = self._client.get_queue_url(QueueName=self._queue_name)["QueueUrl"]
            except AWS_ERRORS as error:
                raise outage(error, f"looking up the queue {self._queue_name}") from error
            self._limits = self._limits_of(queue_url)
            self._queue_url = queue_url

    def send(self, entries: Sequence[Entry]) -> Sequence[EntryResult]:
        doing = f"sending to the queue {self._queue_name}"
        self._check_sizes(entries)
        queue_url = self._queue_url
        if queue_url is None:  # a neighbour's call has failed since `open`
            raise Unavailable(f"{doing}: it has to be looked up again", OutageKind.OTHER)
        try:
            answer = self._client.send_message_batch(
                QueueUrl=queue_url,
                Entries=[_numbered(entry, index) for index, entry in enumerate(entries)],
            )
        except AWS_ERRORS as error:
            if isinstance(error, ClientError) and code_of(error) in _CONTENT_ERRORS:
                raise PackRefused(f"{doing}: {error}") from error
            self._queue_url = None  # it may have been deleted, and be created anew elsewhere
            raise outage(error, doing) from error
        successful = [each["Id"] for each in answer.get("Successful", ())]
        return results_of("SQS", len(entries), successful, answer.get("Failed", ()))

    def _limits_of(self, queue_url: str) -> PackLimits:
        try:
            attributes = self._client.get_queue_attributes(
                QueueUrl=queue_url, AttributeNames=["MaximumMessageSize"]
            )["Attributes"]
        except AWS_ERRORS as error:
            # A permission that publishing does not need; SQS refuses what is too large by itself.
            log.info(
                "the queue's message size limit is unknown",
                extra={"queue": self._queue_name, "error": str(error)},
            )
            return LIMITS
        most = int(attributes.get("MaximumMessageSize", LIMITS.entry_bytes))
        return PackLimits(
            entries=LIMITS.entries,
            pack_bytes=LIMITS.pack_bytes,
            entry_bytes=min(LIMITS.entry_bytes, most),
        )

    def _check_sizes(self, entries: Sequence[Entry]) -> None:
        """Entries that were prepared before the queue's own limit was known."""
        for entry in entries:
            if entry.size > self._limits.entry_bytes:
                raise PackRefused(oversize(entry.size, self._limits.entry_bytes).reason)


def _numbered(entry: Entry, index: int) -> "SendMessageBatchRequestEntryTypeDef":
    """The id is the position: it need only be unique within the call, and says where to look."""
    content: SendMessageBatchRequestEntryTypeDef = entry.content
    return {**content, "Id": str(index)}
