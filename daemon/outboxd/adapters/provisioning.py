"""Everything that the configuration wants in AWS: looked at, planned, carried out in order."""

from typing import assert_never

import msgspec

from outboxd.adapters.eventbridge.provisioning import BusProvisioner
from outboxd.adapters.sns.provisioning import TopicProvisioner
from outboxd.adapters.sqs.provisioning import QueueProvisioner
from outboxd.core.provisioning import Action, Step, plan, wanted_queues
from outboxd.core.provisioning_fan_out import (
    FanOut,
    WantedBus,
    WantedPolicy,
    WantedRule,
    WantedSubscription,
    WantedTopic,
    wanted_fan_out,
)
from outboxd.core.provisioning_steps import Existing, FanOutStep, plan_fan_out
from outboxd.core.queue_policies import EVENTBRIDGE_STATEMENT, SNS_STATEMENT
from outboxd.core.settings import Settings


class Plan(msgspec.Struct, frozen=True):
    """All steps in their order: queues first, for all the rest leads to them."""

    queues: tuple[Step, ...]
    fan_out: tuple[FanOutStep, ...]

    @property
    def actions(self) -> tuple[Action, ...]:
        return (
            *(step.action for step in self.queues),
            *(step.action for step in self.fan_out),
        )


class Provisioner:
    """The queues, topics and buses of one account and region. Services that the configuration does
    not use are not asked. Raises Unavailable when AWS does not do as it is asked."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._queues = QueueProvisioner(settings.aws)
        self._fan_out = wanted_fan_out(settings)
        self._rules = {rule.name: rule for rule in self._fan_out.rules}
        arn = self._queues.arn
        wanted = self._fan_out
        self._topics = TopicProvisioner(settings.aws, arn) if wanted.topics else None
        uses_buses = wanted.buses or wanted.rules
        self._buses = BusProvisioner(settings.aws, arn) if uses_buses else None

    def plan(self) -> Plan:
        """What differs. Raises TypeConflict for what is of another type than is wanted."""
        wanted = wanted_queues(self._settings)
        queues = self._queues.existing([queue.name for queue in wanted])
        policies = {
            name: attributes["Policy"]
            for name, attributes in queues.items()
            if "Policy" in attributes
        }
        return Plan(
            plan(wanted, queues),
            plan_fan_out(self._fan_out, self._existing(self._fan_out, policies)),
        )

    def carry_out(self, plan: Plan) -> None:
        """Do what the plan says."""
        for step in plan.queues:
            self._queues.carry_out(step)
        for each in plan.fan_out:
            self._carry_out(each)

    def _existing(self, wanted: FanOut, policies: dict[str, str]) -> Existing:
        topics, buses = self._topics, self._buses
        return Existing(
            topics={} if topics is None else topics.existing(wanted.topics),
            subscriptions={} if topics is None else topics.subscriptions(wanted.subscriptions),
            buses=frozenset() if buses is None else buses.existing(wanted.buses),
            rules={} if buses is None else buses.rules(wanted.rules),
            policies=policies,
        )

    def _carry_out(self, step: FanOutStep) -> None:
        match step.wanted:
            case WantedTopic() as topic if self._topics is not None:
                self._topics.carry_out_topic(topic, step.action)
            case WantedSubscription() as subscription if self._topics is not None:
                self._topics.carry_out_subscription(subscription, step)
            case WantedBus() as bus if self._buses is not None:
                self._buses.carry_out_bus(bus, step.action)
            case WantedRule() as rule if self._buses is not None:
                self._buses.carry_out_rule(rule, step.action)
            case WantedPolicy() as policy:
                self._admit(policy, step.action)
            case WantedTopic() | WantedSubscription() | WantedBus() | WantedRule():
                raise AssertionError(f"{step.item} without a service")
            case _:
                assert_never(step.wanted)

    def _admit(self, policy: WantedPolicy, action: Action) -> None:
        if action is Action.UNCHANGED:
            return
        topics, buses = self._topics, self._buses
        self._queues.admit(
            policy.queue,
            {
                SNS_STATEMENT: [topics.arn(name) for name in policy.topics] if topics else [],
                EVENTBRIDGE_STATEMENT: [buses.rule_arn(self._rules[name]) for name in policy.rules]
                if buses
                else [],
            },
        )
