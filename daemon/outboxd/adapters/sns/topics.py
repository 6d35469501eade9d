"""Finds topics by their names, for which SNS has no call."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types_boto3_sns import SNSClient


def find_topic(client: "SNSClient", name: str) -> str | None:
    """The ARN of the topic of that name in the client's account and region, if there is one.

    CreateTopic would tell it too, and make a missing topic, which would take events from then on
    and deliver them to nobody. Raises what the SDK raises.
    """
    for page in client.get_paginator("list_topics").paginate():
        for topic in page.get("Topics", ()):
            arn = topic["TopicArn"]
            if arn.rpartition(":")[2] == name:
                return arn
    return None
