"""Every action of SNS: how its request is read and what it does."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import msgspec

from outboxd.localaws.sns import requests
from outboxd.localaws.sns.call import Call
from outboxd.localaws.sns.operations import publish, subscriptions, topics

Request = TypeVar("Request", bound=msgspec.Struct)


class Operation(NamedTuple):
    decode: Callable[[bytes], msgspec.Struct]
    act: Callable[[Call, Any], msgspec.Struct | None]


def _operation(
    request: type[Request], act: Callable[[Call, Request], msgspec.Struct | None]
) -> Operation:
    return Operation(msgspec.json.Decoder(request).decode, act)


OPERATIONS = {
    "CreateTopic": _operation(requests.CreateTopic, topics.create_topic),
    "DeleteTopic": _operation(requests.TopicOnly, topics.delete_topic),
    "ListTopics": _operation(requests.ListAll, topics.list_topics),
    "GetTopicAttributes": _operation(requests.TopicOnly, topics.get_topic_attributes),
    "SetTopicAttributes": _operation(requests.SetTopicAttributes, topics.set_topic_attributes),
    "Subscribe": _operation(requests.Subscribe, subscriptions.subscribe),
    "Unsubscribe": _operation(requests.SubscriptionOnly, subscriptions.unsubscribe),
    "ListSubscriptions": _operation(requests.ListAll, subscriptions.list_subscriptions),
    "ListSubscriptionsByTopic": _operation(
        requests.ListSubscriptionsByTopic, subscriptions.list_subscriptions_by_topic
    ),
    "GetSubscriptionAttributes": _operation(
        requests.SubscriptionOnly, subscriptions.get_subscription_attributes
    ),
    "SetSubscriptionAttributes": _operation(
        requests.SetSubscriptionAttributes, subscriptions.set_subscription_attributes
    ),
    "Publish": _operation(requests.Publish, publish.publish),
    "PublishBatch": _operation(requests.PublishBatch, publish.publish_batch),
}
