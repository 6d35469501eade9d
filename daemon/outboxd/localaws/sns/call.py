"""One call of an operation: what it works on and when."""

from typing import NamedTuple

from outboxd.localaws.sns.arns import topic_place
from outboxd.localaws.sns.errors import invalid_parameter
from outboxd.localaws.sns.registry import Registry
from outboxd.localaws.sns.topic import Topic
from outboxd.localaws.sqs.inbox import Inbox


class Call(NamedTuple):
    """The state an operation works on, and the circumstances of this request."""

    registry: Registry
    inbox: Inbox
    region: str
    base_url: str
    now: float

    def topic(self, arn: str, parameter: str = "TopicArn") -> Topic:
        """The topic of this ARN. Raises InvalidParameter or NotFound."""
        if not arn:
            raise invalid_parameter(f"{parameter} Reason: no value for required parameter")
        place = topic_place(arn, parameter)
        if place.region != self.region:
            raise invalid_parameter(parameter)
        return self.registry.get(place)
