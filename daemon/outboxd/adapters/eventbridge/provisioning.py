"""Creates event buses and rules with queues as targets, and corrects the rules; deletes nothing."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

from botocore.exceptions import ClientError

from outboxd.adapters.aws.explaining import Explaining
from outboxd.adapters.aws.outages import code_of, kind_of_code
from outboxd.adapters.eventbridge.client import events_client
from outboxd.core.errors import OutageKind, Unavailable
from outboxd.core.provisioning import Action
from outboxd.core.provisioning_fan_out import WantedBus, WantedRule, target_id
from outboxd.core.provisioning_steps import ExistingRule
from outboxd.core.queue_policies import rule_arn
from outboxd.core.settings import AwsSettings

if TYPE_CHECKING:
    from types_boto3_events import EventBridgeClient
    from types_boto3_events.type_defs import TargetTypeDef

QueueArn = Callable[[str], str]
"""The ARN of a queue that exists, by its name in SQS."""

_KEPT = ("Description", "RoleArn", "State")
"""What a rule that is put again would lose unless it is told again."""


class BusProvisioner:
    """The buses of one account and region. Everything here raises Unavailable, with what was being
    done and what to do about it, when AWS does not do as it is asked."""

    def __init__(self, aws: AwsSettings, queue_arn: QueueArn) -> None:
        self._queue_arn = queue_arn
        self._explained = Explaining("event bus", aws.endpoint_url)
        with self._explained("setting up the AWS SDK"):
            self._client: EventBridgeClient = events_client(aws, connections=1)

    def existing(self, buses: Iterable[WantedBus]) -> frozenset[str]:
        """The names of those of the buses that there are."""
        return frozenset(bus.name for bus in buses if self._bus_arn(bus.name) is not None)

    def rules(self, wanted: Iterable[WantedRule]) -> dict[tuple[str, str], ExistingRule]:
        """Those of the rules that there are, by bus and name."""
        found: dict[tuple[str, str], ExistingRule] = {}
        for rule in wanted:
            with self._explained(f"reading rule {rule.name}"):
                described = self._described(rule)
                if described is not None:
                    found[rule.bus, rule.rule] = ExistingRule(
                        pattern=described.get("EventPattern", "{}"),
                        targets={
                            _name(target["Arn"]): _letters(target) for target in self._targets(rule)
                        },
                        enabled=described.get("State") != "DISABLED",
                    )
        return found

    def rule_arn(self, rule: WantedRule) -> str:
        """The ARN of a rule, whether there is one yet or not, on a bus that there is."""
        bus_arn = self._bus_arn(rule.bus)
        if bus_arn is None:
            raise Unavailable(
                f"looking for the event bus {rule.bus}: it does not exist", OutageKind.MISSING
            )
        return rule_arn(bus_arn, rule.name)

    def carry_out_bus(self, bus: WantedBus, action: Action) -> None:
        """Create it if that is what the plan says."""
        if action is Action.CREATE:
            with self._explained(f"creating event bus {bus.name}"):
                self._client.create_event_bus(Name=bus.name)

    def carry_out_rule(self, rule: WantedRule, action: Action) -> None:
        """Put the rule and its targets; a second time does no harm. Targets that others have added
        stay, and so does what they have set on ours."""
        if action is Action.UNCHANGED:
            return
        with self._explained(f"putting rule {rule.name}"):
            described = self._described(rule) or {}
            kept: Any = {key: described[key] for key in _KEPT if described.get(key)}
            self._client.put_rule(
                Name=rule.rule, EventBusName=rule.bus, EventPattern=rule.pattern, **kept
            )
            there = {_name(target["Arn"]): target for target in self._targets(rule)}
            answer = self._client.put_targets(
                Rule=rule.rule,
                EventBusName=rule.bus,
                Targets=[
                    self._target(queue, letters, there.get(queue))
                    for queue, letters in rule.targets.items()
                ],
            )
        for failure in answer.get("FailedEntries", ()):
            raise Unavailable(
                f"putting rule {rule.name}: its target {failure.get('TargetId')} is refused: "
                f"{failure.get('ErrorCode')}: {failure.get('ErrorMessage')}",
                OutageKind.OTHER,
            )

    def _target(self, queue: str, letters: str, there: "TargetTypeDef | None") -> "TargetTypeDef":
        arn = self._queue_arn(queue)
        base: TargetTypeDef = {"Id": target_id(queue), "Arn": arn} if there is None else there
        return {**base, "DeadLetterConfig": {"Arn": self._queue_arn(letters)}}

    def _bus_arn(self, name: str) -> str | None:
        with self._explained(f"reading event bus {name}"):
            try:
                return self._client.describe_event_bus(Name=name)["Arn"]
            except ClientError as error:
                if _missing(error):
                    return None
                raise

    def _described(self, rule: WantedRule) -> dict[str, Any] | None:
        try:
            answer = self._client.describe_rule(Name=rule.rule, EventBusName=rule.bus)
        except ClientError as error:
            if _missing(error):
                return None
            raise
        return dict(answer)

    def _targets(self, rule: WantedRule) -> "Iterator[TargetTypeDef]":
        pages = self._client.get_paginator("list_targets_by_rule")
        for page in pages.paginate(Rule=rule.rule, EventBusName=rule.bus):
            # The SDK's types tell apart what is read and what is written; they have the same keys.
            yield from cast("list[TargetTypeDef]", page.get("Targets", []))


def _missing(error: ClientError) -> bool:
    return kind_of_code(code_of(error)) is OutageKind.MISSING


def _name(arn: str) -> str:
    return arn.rpartition(":")[2]


def _letters(target: "TargetTypeDef") -> str | None:
    arn = target.get("DeadLetterConfig", {}).get("Arn")
    return _name(arn) if arn else None
