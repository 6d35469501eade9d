"""A queue as a destination of the relay."""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from outboxd.adapters.aws.batches import results_of
from outboxd.adapters.aws.destination import AwsDestination, Found, numbered
from outboxd.adapters.aws.outages import AWS_ERRORS
from outboxd.adapters.aws.targets import connections_for, targets_of
from outboxd.adapters.sqs.client import sqs_client
from outboxd.adapters.sqs.entries import LIMITS, sqs_entry
from outboxd.core.destinations import SqsTarget
from outboxd.core.outbox import StoredEvent
from outboxd.core.packing import PackLimits
from outboxd.core.relay_outcomes import EntryResult, Refused
from outboxd.core.relay_rules import longest_call_seconds
from outboxd.core.settings import Envelope, Settings, is_fifo
from outboxd.ports.destination import Entry

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

log = logging.getLogger(__name__)


def sqs_destinations(settings: Settings) -> dict[str, "SqsDestination"]:
    """Every queue that the routes name, by its name there, on one client.

    Its calls are single attempts: a repetition by the SDK would be a duplicate that nobody counts.
    """
    relay, targets = settings.relay, targets_of(SqsTarget, settings)
    if relay is None or not targets:
        return {}
    client = sqs_client(settings.aws, connections=connections_for(targets, relay), attempts=1)
    return {
        name: SqsDestination(
            client,
            target.queue_name,
            longest_call_seconds(settings),
            fair_groups=target.fair_groups,
            cloudevents_source=relay.cloudevents_source,
        )
        for name, target in targets.items()
    }


class SqsDestination(AwsDestination):
    """Sends to one queue, which it looks up by name before its first call and after an outage."""

    thing = "queue"
    content_errors = frozenset(
        {
            "BatchRequestTooLong",
            "TooManyEntriesInBatchRequest",
            "InvalidMessageContents",
            "InvalidParameterValue",
        }
    )

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
        super().__init__(client, queue_name, call_seconds, LIMITS)
        self._client = client
        self._queue_name = queue_name
        self._fifo = is_fifo(queue_name)
        self._fair_groups = fair_groups
        self._cloudevents_source = cloudevents_source

    def _find(self) -> Found:
        queue_url = self._client.get_queue_url(QueueName=self._queue_name)["QueueUrl"]
        return Found(queue_url, self._limits_of(queue_url))

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

    def _entry(self, event: StoredEvent, envelope: Envelope) -> Entry | Refused:
        return sqs_entry(
            event,
            envelope,
            fifo=self._fifo,
            fair=self._fair_groups,
            source=self._cloudevents_source,
        )

    def _call(self, address: str, entries: Sequence[Entry]) -> list[EntryResult]:
        answer = self._client.send_message_batch(QueueUrl=address, Entries=numbered(entries))
        successful = [each["Id"] for each in answer.get("Successful", ())]
        return results_of("SQS", len(entries), successful, answer.get("Failed", ()))
