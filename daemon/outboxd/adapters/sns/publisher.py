"""A topic as a destination of the relay."""

import logging
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from outboxd.adapters.aws.batches import results_of
from outboxd.adapters.aws.outages import AWS_ERRORS, code_of, kind_of_code, outage
from outboxd.adapters.sns.client import sns_client
from outboxd.adapters.sns.entries import CALL_BYTES, LIMITS, sns_entry
from outboxd.adapters.sns.topics import find_topic
from outboxd.core.destinations import SnsTarget, target_of
from outboxd.core.errors import OutageKind, Unavailable
from outboxd.core.outbox import StoredEvent
from outboxd.core.outgoing import oversize
from outboxd.core.packing import PackLimits
from outboxd.core.relay_outcomes import EntryResult, Refused
from outboxd.core.relay_rules import longest_call_seconds
from outboxd.core.routes import RouteTable
from outboxd.core.settings import Envelope, Settings
from outboxd.ports.destination import Entry, PackRefused

if TYPE_CHECKING:
    from types_boto3_sns import SNSClient
    from types_boto3_sns.type_defs import PublishBatchRequestEntryTypeDef

log = logging.getLogger(__name__)

_CONTENT_ERRORS = frozenset(
    {
        "BatchRequestTooLong",
        "TooManyEntriesInBatchRequest",
        "InvalidParameter",
        "ParameterValueInvalid",
        "InvalidParameterValue",
        "ValidationException",
        "ValidationError",
    }
)
"""Codes that refuse a whole call for what is in it. That the topic is none of it is known from
`open`, which has asked for it by the same ARN."""


def sns_destinations(settings: Settings) -> dict[str, "SnsDestination"]:
    """Every topic that the routes name, by its name there, on one client with single attempts."""
    if settings.relay is None:
        return {}
    targets = {
        name: target
        for name in RouteTable(settings.relay.routes).destinations
        if isinstance(target := target_of(name, settings), SnsTarget)
    }
    if not targets:
        return {}
    client = sns_client(
        settings.aws, connections=settings.relay.packs_in_flight * len(targets), attempts=1
    )
    return {
        name: SnsDestination(
            client,
            target,
            longest_call_seconds(settings),
            cloudevents_source=settings.relay.cloudevents_source,
        )
        for name, target in targets.items()
    }


class SnsDestination:
    """Publishes to one topic, which it looks up before its first call and after an outage."""

    def __init__(
        self,
        client: "SNSClient",
        target: SnsTarget,
        call_seconds: float,
        *,
        cloudevents_source: str = "outboxd",
    ) -> None:
        """`call_seconds`: what the client's timeouts for connecting and writing add up to."""
        self._client = client
        self._target = target
        self._call_seconds = call_seconds
        self._cloudevents_source = cloudevents_source
        self._looking_up = threading.Lock()
        self._arn: str | None = None
        self._limits = LIMITS

    @property
    def limits(self) -> PackLimits:
        """SNS's own limits, and once it has been looked up those of the topic."""
        return self._limits

    @property
    def call_seconds(self) -> float:
        return self._call_seconds

    def prepare(self, event: StoredEvent, envelope: Envelope) -> Entry | Refused:
        entry = sns_entry(
            event,
            envelope,
            fifo=self._target.fifo,
            fair=self._target.fair_groups,
            source=self._cloudevents_source,
        )
        if isinstance(entry, Entry) and entry.size > self._limits.entry_bytes:
            return oversize(entry.size, self._limits.entry_bytes)
        return entry

    def open(self) -> None:
        with self._looking_up:
            if self._arn is not None:
                return
            arn = self._target.arn or self._found()
            self._limits = self._limits_of(arn)
            self._arn = arn

    def send(self, entries: Sequence[Entry]) -> Sequence[EntryResult]:
        doing = f"publishing to the topic {self._target.topic_name}"
        self._check_sizes(entries)
        arn = self._arn
        if arn is None:  # a neighbour's call has failed since `open`
            raise Unavailable(f"{doing}: it has to be looked up again", OutageKind.OTHER)
        try:
            answer = self._client.publish_batch(
                TopicArn=arn,
                PublishBatchRequestEntries=[
                    _numbered(entry, index) for index, entry in enumerate(entries)
                ],
            )
        except AWS_ERRORS as error:
            if isinstance(error, ClientError) and code_of(error) in _CONTENT_ERRORS:
                raise PackRefused(f"{doing}: {error}") from error
            self._arn = None  # it may have been deleted
            raise outage(error, doing, thing="topic") from error
        successful = [each["Id"] for each in answer.get("Successful", ()) if "Id" in each]
        return results_of("SNS", len(entries), successful, answer.get("Failed", ()))

    def _found(self) -> str:
        doing = f"looking up the topic {self._target.topic_name}"
        try:
            arn = find_topic(self._client, self._target.topic_name)
        except AWS_ERRORS as error:
            raise outage(error, doing, thing="topic") from error
        if arn is None:
            raise Unavailable(
                f"{doing}: the topic does not exist (run `outboxd provision`)", OutageKind.MISSING
            )
        return arn

    def _limits_of(self, arn: str) -> PackLimits:
        """Asks also so that a call that is refused later is not refused for its topic."""
        try:
            attributes = self._client.get_topic_attributes(TopicArn=arn)["Attributes"]
        except AWS_ERRORS as error:
            if isinstance(error, ClientError) and (
                kind_of_code(code_of(error)) is OutageKind.DENIED
            ):
                # A permission that publishing does not need; what is too large SNS refuses itself.
                log.info(
                    "the topic's message size limit is unknown",
                    extra={"topic": self._target.topic_name, "error": str(error)},
                )
                return LIMITS
            doing = f"looking at the topic {self._target.topic_name}"
            raise outage(error, doing, thing="topic") from error
        most = int(attributes.get("MaximumMessageSize", CALL_BYTES))
        return PackLimits(entries=LIMITS.entries, pack_bytes=most, entry_bytes=most)

    def _check_sizes(self, entries: Sequence[Entry]) -> None:
        """Entries that were prepared before the topic's own limit was known."""
        for entry in entries:
            if entry.size > self._limits.entry_bytes:
                raise PackRefused(oversize(entry.size, self._limits.entry_bytes).reason)


def _numbered(entry: Entry, index: int) -> "PublishBatchRequestEntryTypeDef":
    """The id is the position: it need only be unique within the call, and says where to look."""
    content: PublishBatchRequestEntryTypeDef = entry.content
    return {**content, "Id": str(index)}
