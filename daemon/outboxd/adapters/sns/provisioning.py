"""Creates topics and subscriptions of queues, and corrects the subscriptions; deletes nothing."""

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from outboxd.adapters.aws.explaining import Explaining
from outboxd.adapters.aws.outages import code_of, kind_of_code
from outboxd.adapters.sns.client import sns_client
from outboxd.adapters.sns.topics import find_topic
from outboxd.core.errors import OutageKind
from outboxd.core.provisioning import Action
from outboxd.core.provisioning_fan_out import WantedSubscription, WantedTopic
from outboxd.core.provisioning_steps import FanOutStep
from outboxd.core.settings import AwsSettings

if TYPE_CHECKING:
    from types_boto3_sns import SNSClient

QueueArn = Callable[[str], str]
"""The ARN of a queue that exists, by its name in SQS."""


class TopicProvisioner:
    """The topics of one account and region. Everything here raises Unavailable, with what was being
    done and what to do about it, when AWS does not do as it is asked."""

    def __init__(self, aws: AwsSettings, queue_arn: QueueArn) -> None:
        self._queue_arn = queue_arn
        self._explained = Explaining("topic", aws.endpoint_url)
        with self._explained("setting up the AWS SDK"):
            self._client: SNSClient = sns_client(aws, connections=1)
        self._arns: dict[str, str] = {}

    def existing(self, topics: Iterable[WantedTopic]) -> dict[str, dict[str, str]]:
        """The attributes of those of the topics that there are."""
        found: dict[str, dict[str, str]] = {}
        for topic in topics:
            with self._explained(f"reading topic {topic.name}"):
                arn = topic.arn or find_topic(self._client, topic.name)
                if arn is not None:
                    answer = self._client.get_topic_attributes(TopicArn=arn)
                    found[topic.name] = dict(answer["Attributes"])
                    self._arns[topic.name] = arn
        return found

    def subscriptions(
        self, wanted: Iterable[WantedSubscription]
    ) -> dict[tuple[str, str], dict[str, str]]:
        """The attributes of those of the subscriptions that there are, on topics that `existing`
        has found; SubscriptionArn is among them."""
        found: dict[tuple[str, str], dict[str, str]] = {}
        for subscription in wanted:
            if subscription.topic in self._arns:
                with self._explained(f"reading the subscription {subscription.name}"):
                    attributes = self._subscription(subscription)
                if attributes is not None:
                    found[subscription.topic, subscription.queue] = attributes
        return found

    def arn(self, topic: str) -> str:
        """The ARN of a topic that was found or created."""
        return self._arns[topic]

    def carry_out_topic(self, topic: WantedTopic, action: Action) -> None:
        """Create it if that is what the plan says; a second time does no harm."""
        if action is not Action.CREATE:
            return
        with self._explained(f"creating topic {topic.name}"):
            answer = self._client.create_topic(Name=topic.name, Attributes=topic.created_with)
            self._arns[topic.name] = answer["TopicArn"]

    def carry_out_subscription(self, wanted: WantedSubscription, step: FanOutStep) -> None:
        """Make the subscription, or correct what the plan names."""
        with self._explained(f"subscribing {wanted.name}"):
            values = self._attributes(wanted)
            match step.action:
                case Action.CREATE:
                    self._client.subscribe(
                        TopicArn=self._arns[wanted.topic],
                        Protocol="sqs",
                        Endpoint=self._queue_arn(wanted.queue),
                        Attributes=values,
                        ReturnSubscriptionArn=True,
                    )
                case Action.UPDATE:
                    self._correct(wanted, step, values)
                case Action.UNCHANGED:
                    pass

    def _correct(
        self, wanted: WantedSubscription, step: FanOutStep, values: dict[str, str]
    ) -> None:
        there = self._subscription(wanted) or {}
        for change in step.changes:
            name = "RedrivePolicy" if change.attribute == "dead letters" else change.attribute
            self._client.set_subscription_attributes(
                SubscriptionArn=there["SubscriptionArn"],
                AttributeName=name,
                AttributeValue=values.get(name, change.new),
            )

    def _attributes(self, wanted: WantedSubscription) -> dict[str, str]:
        values = {"RawMessageDelivery": "true" if wanted.raw else "false"}
        if wanted.dead_letter is not None:
            letters = self._queue_arn(wanted.dead_letter)
            values["RedrivePolicy"] = json.dumps({"deadLetterTargetArn": letters})
        if wanted.filter_policy != "{}":
            values["FilterPolicyScope"] = wanted.filter_scope
            values["FilterPolicy"] = wanted.filter_policy
        return values

    def _subscription(self, wanted: WantedSubscription) -> dict[str, str] | None:
        """By the queue's name: a topic has one subscription of a queue at the most. A queue of that
        name in another account or region is another one."""
        try:
            endpoint = self._queue_arn(wanted.queue)
        except ClientError as error:
            if kind_of_code(code_of(error)) is OutageKind.MISSING:
                return None
            raise
        pages = self._client.get_paginator("list_subscriptions_by_topic")
        for page in pages.paginate(TopicArn=self._arns[wanted.topic]):
            for each in page.get("Subscriptions", ()):
                if each.get("Endpoint") == endpoint:
                    answer = self._client.get_subscription_attributes(
                        SubscriptionArn=each["SubscriptionArn"]
                    )
                    return {**answer["Attributes"], "SubscriptionArn": each["SubscriptionArn"]}
        return None
