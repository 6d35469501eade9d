"""Subscriptions: make, list, configure and end them."""

from collections.abc import Iterable

from outboxd.localaws.sns import requests, responses
from outboxd.localaws.sns.arns import check_subscription_arn
from outboxd.localaws.sns.call import Call
from outboxd.localaws.sns.errors import invalid_parameter, unsupported
from outboxd.localaws.sns.operations.listing import listed
from outboxd.localaws.sns.subscription import (
    PROTOCOL,
    Subscription,
    changed,
    created,
    described,
)
from outboxd.localaws.sns.topic import Topic
from outboxd.localaws.sqs.arns import ACCOUNT, parsed_arn

_OTHER_PROTOCOLS = frozenset(
    {"http", "https", "email", "email-json", "sms", "application", "lambda", "firehose"}
)


def subscribe(call: Call, request: requests.Subscribe) -> responses.SubscriptionArn:
    """At once confirmed: topic and queue have one owner."""
    topic = call.topic(request.topic_arn)
    _check_protocol(request.protocol)
    _check_endpoint(request.endpoint, topic)
    settings = created(request.attributes, topic)
    for existing in call.registry.subscriptions_of(topic):
        if existing.endpoint == request.endpoint:
            if request.attributes and existing.settings != settings:
                raise invalid_parameter(
                    "Attributes Reason: Subscription already exists with different attributes"
                )
            return responses.SubscriptionArn(existing.arn)
    subscription = call.registry.subscribe(topic, request.endpoint, settings)
    return responses.SubscriptionArn(subscription.arn)


def unsubscribe(call: Call, request: requests.SubscriptionOnly) -> None:
    check_subscription_arn(request.subscription_arn)
    call.registry.unsubscribe(request.subscription_arn)


def list_subscriptions(call: Call, request: requests.ListAll) -> responses.Subscriptions:
    return _page(call.registry.subscriptions(call.region), request.next_token)


def list_subscriptions_by_topic(
    call: Call, request: requests.ListSubscriptionsByTopic
) -> responses.Subscriptions:
    topic = call.topic(request.topic_arn)
    return _page(call.registry.subscriptions_of(topic), request.next_token)


def get_subscription_attributes(
    call: Call, request: requests.SubscriptionOnly
) -> responses.Attributes:
    check_subscription_arn(request.subscription_arn)
    return responses.Attributes(described(call.registry.subscription(request.subscription_arn)))


def set_subscription_attributes(call: Call, request: requests.SetSubscriptionAttributes) -> None:
    check_subscription_arn(request.subscription_arn)
    subscription = call.registry.subscription(request.subscription_arn)
    subscription.settings = changed(
        subscription.settings,
        request.attribute_name,
        request.attribute_value,
        subscription.topic,
    )


def _check_protocol(protocol: str) -> None:
    if protocol == PROTOCOL:
        return
    if protocol in _OTHER_PROTOCOLS:
        raise unsupported(f"delivers to SQS queues only, not by {protocol}.")
    raise invalid_parameter(f"Does not support this protocol string: {protocol}")


def _check_endpoint(endpoint: str, topic: Topic) -> None:
    # Whether the queue exists is not asked, as in AWS: deliveries will fail.
    place = parsed_arn(endpoint)
    if place is None:
        raise invalid_parameter("SQS endpoint ARN")
    if place[1].endswith(".fifo") and not topic.fifo:
        raise invalid_parameter(
            "Invalid parameter: Endpoint Reason: FIFO SQS Queues can not be subscribed to "
            "standard SNS topics"
        )


def _page(subscriptions: Iterable[Subscription], token: str | None) -> responses.Subscriptions:
    in_order = sorted(subscriptions, key=_arn)
    shown, next_token = listed(in_order, _arn, token)
    return responses.Subscriptions([_entry(each) for each in shown], next_token)


def _entry(subscription: Subscription) -> responses.SubscriptionEntry:
    return responses.SubscriptionEntry(
        subscription_arn=subscription.arn,
        owner=ACCOUNT,
        protocol=PROTOCOL,
        endpoint=subscription.endpoint,
        topic_arn=subscription.topic.arn,
    )


def _arn(subscription: Subscription) -> str:
    return subscription.arn
