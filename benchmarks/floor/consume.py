"""The floor of a consumer: receive ten, do the effects one by one, delete ten."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import psycopg

from benchmarks.floor.client import sqs

if TYPE_CHECKING:
    from types_boto3_sqs.type_defs import MessageTypeDef

MARK = """
    INSERT INTO outboxd.processed_events (event_id, handler) VALUES (%s, 'effect')
    ON CONFLICT DO NOTHING
"""

EFFECT = "INSERT INTO public.effects (event_id, number) VALUES (%s, %s)"


def consume(endpoint: str, queue: str) -> int:
    """Receive and delete until the queue is empty, doing nothing; how many calls that took."""
    return _drain(endpoint, queue, lambda _: None)


def consume_once(dsn: str, endpoint: str, queue: str) -> int:
    """The same with a mark and an insert in a transaction of its own for each message."""
    with psycopg.connect(dsn, autocommit=True) as connection:

        def take_effect(message: "MessageTypeDef") -> None:
            event = json.loads(message["Body"])
            with connection.transaction():
                if connection.execute(MARK, [event["id"]]).rowcount:
                    connection.execute(EFFECT, [event["id"], event["payload"]["number"]])

        return _drain(endpoint, queue, take_effect)


def _drain(endpoint: str, queue: str, handle: "Callable[[MessageTypeDef], None]") -> int:
    client, url = sqs(endpoint, queue)
    calls = 0
    while messages := client.receive_message(
        QueueUrl=url,
        MaxNumberOfMessages=10,
        MessageSystemAttributeNames=["ApproximateReceiveCount", "SentTimestamp"],
        MessageAttributeNames=["All"],
    ).get("Messages"):
        for message in messages:
            handle(message)
        client.delete_message_batch(
            QueueUrl=url,
            Entries=[
                {"Id": str(index), "ReceiptHandle": message["ReceiptHandle"]}
                for index, message in enumerate(messages)
            ],
        )
        calls += 2
    return calls
