"""A topic as a destination of the relay."""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from outboxd.adapters.aws.batches import results_of
from outboxd.adapters.aws.destination import AwsDestination, Found, numbered
from outboxd.adapters.aws.outages import code_of, kind_of_code
from outboxd.adapters.aws.targets import connections_for, targets_of
from outboxd.adapters.sns.client import sns_client
from outboxd.adapters.sns.entries import CALL_BYTES, LIMITS, sns_entry
from outboxd.adapters.sns.topics import find_topic
from outboxd.core.destinations import SnsTarget
from outboxd.core.errors import OutageKind, Unavailable
from outboxd.core.outbox import StoredEvent
from outboxd.core.packing import PackLimits
from outboxd.core.relay_outcomes import EntryResult, Refused
from outboxd.core.relay_rules import longest_call_seconds
from outboxd.core.settings import Envelope, Settings
from outboxd.ports.destination import Entry

if TYPE_CHECKING:
    from types_boto3_sns import SNSClient

log = logging.getLogger(__name__)


def sns_destinations(settings: Settings) -> dict[str, "SnsDestination"]:
    """Every topic that the routes name, by its name there, on one client with single attempts."""
    relay, targets = settings.relay, targets_of(SnsTarget, settings)
    if relay is None or not targets:
        return {}
    client = sns_client(settings.aws, connections=connections_for(targets, relay), attempts=1)
    return {
        name: SnsDestination(
            client,
            target,
            longest_call_seconds(settings),
            cloudevents_source=relay.cloudevents_source,
        )
        for name, target in targets.items()
    }


class SnsDestination(AwsDestination):
    """Publishes to one topic, which it looks up before its first call and after an outage."""

    thing = "topic"
    # That the topic is none of them is known from `open`, which has asked for it by the same ARN.
    content_errors = frozenset(
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

    def __init__(
        self,
        client: "SNSClient",
        target: SnsTarget,
        call_seconds: float,
        *,
        cloudevents_source: str = "outboxd",
    ) -> None:
        """`call_seconds`: what the client's timeouts for connecting and writing add up to."""
        super().__init__(client, target.topic_name, call_seconds, LIMITS)
        self._client = client
        self._target = target
        self._cloudevents_source = cloudevents_source

    def _find(self) -> Found:
        arn = self._target.arn or find_topic(self._client, self._target.topic_name)
        if arn is None:
            raise Unavailable(
                f"looking for the topic {self._target.topic_name}: the topic does not exist (run "
                "`outboxd provision`)",
                OutageKind.MISSING,
            )
        return Found(arn, self._limits_of(arn))

    def _limits_of(self, arn: str) -> PackLimits:
        """Asks also so that a call that is refused later is not refused for its topic."""
        try:
            attributes = self._client.get_topic_attributes(TopicArn=arn)["Attributes"]
        except ClientError as error:
            if kind_of_code(code_of(error)) is not OutageKind.DENIED:
                raise
            # A permission that publishing does not need; what is too large SNS refuses itself.
            log.info(
                "the topic's message size limit is unknown",
                extra={"topic": self._target.topic_name, "error": str(error)},
            )
            return LIMITS
        most = int(attributes.get("MaximumMessageSize", CALL_BYTES))
        return PackLimits(entries=LIMITS.entries, pack_bytes=most, entry_bytes=most)

    def _entry(self, event: StoredEvent, envelope: Envelope) -> Entry | Refused:
        return sns_entry(
            event,
            envelope,
            fifo=self._target.fifo,
            fair=self._target.fair_groups,
            source=self._cloudevents_source,
        )

    def _call(self, address: str, entries: Sequence[Entry]) -> list[EntryResult]:
        answer = self._client.publish_batch(
            TopicArn=address, PublishBatchRequestEntries=numbered(entries)
        )
        successful = [each["Id"] for each in answer.get("Successful", ()) if "Id" in each]
        return results_of("SNS", len(entries), successful, answer.get("Failed", ()))
