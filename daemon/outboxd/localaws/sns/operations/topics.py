"""Topics themselves: create, list, configure and delete."""

import re

from outboxd.localaws.sns import requests, responses
from outboxd.localaws.sns.arns import TopicPlace, topic_place
from outboxd.localaws.sns.call import Call
from outboxd.localaws.sns.errors import invalid_parameter
from outboxd.localaws.sns.operations.listing import listed
from outboxd.localaws.sns.topic import DEFAULTS, Topic, created_attributes, described

_NAME = re.compile(r"[A-Za-z0-9_-]{1,256}\Z")
_FIFO_SUFFIX = ".fifo"


def create_topic(call: Call, request: requests.CreateTopic) -> responses.TopicArn:
    """The topic of that name, if there is one with the same attributes."""
    attributes = created_attributes(request.attributes)
    _check_name(request.name, fifo="FifoTopic" in attributes)
    place = TopicPlace(call.region, request.name)
    topic = call.registry.find(place)
    if topic is None:
        topic = call.registry.create(place, attributes)
        topic.tags.update((tag.key, tag.value) for tag in request.tags)
    elif _differs(topic, request.attributes):
        raise invalid_parameter("Attributes Reason: Topic already exists with different attributes")
    return responses.TopicArn(topic.arn)


def delete_topic(call: Call, request: requests.TopicOnly) -> None:
    """Deleting what is not there succeeds, as in AWS."""
    topic = call.registry.find(topic_place(request.topic_arn))
    if topic is not None:
        call.registry.delete(topic)


def list_topics(call: Call, request: requests.ListAll) -> responses.Topics:
    topics = call.registry.topics(call.region)
    shown, token = listed(topics, lambda topic: topic.name, request.next_token)
    return responses.Topics([responses.TopicArn(topic.arn) for topic in shown], token)


def get_topic_attributes(call: Call, request: requests.TopicOnly) -> responses.Attributes:
    topic = call.topic(request.topic_arn)
    count = len(call.registry.subscriptions_of(topic))
    return responses.Attributes(described(topic, count))


def set_topic_attributes(call: Call, request: requests.SetTopicAttributes) -> None:
    topic = call.topic(request.topic_arn)
    if request.attribute_name == "FifoTopic":
        raise invalid_parameter("AttributeName Reason: FifoTopic cannot be changed")
    topic.set(request.attribute_name, request.attribute_value)


def _check_name(name: str, *, fifo: bool) -> None:
    stem = name.removesuffix(_FIFO_SUFFIX)
    if fifo and stem == name:
        raise invalid_parameter(
            "Topic Name Reason: Fifo Topic names must end with .fifo and must be made up of only "
            "uppercase and lowercase ASCII letters, numbers, underscores, and hyphens, and must "
            "be between 1 and 256 characters long."
        )
    if not _NAME.match(stem) or len(name) > 256 or (stem != name and not fifo):
        raise invalid_parameter("Topic Name")


def _differs(topic: Topic, asked: dict[str, str]) -> bool:
    if topic.fifo != (asked.get("FifoTopic") == "true"):
        return True
    present = {**DEFAULTS, **described(topic, 0)}
    names = [name for name in asked if name != "FifoTopic"]
    return any(asked[name] != present.get(name, "") for name in names)
