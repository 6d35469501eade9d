"""The floor of a consumer: receive ten, do the effects one by one, delete ten."""

import json
from collections.abc import Callable
from threading import Thread
from typing import TYPE_CHECKING

import psycopg

from benchmarks.floor.client import sqs

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient
    from types_boto3_sqs.type_defs import MessageTypeDef

MARK = """
    INSERT INTO outboxd.processed_events (event_id, handler) VALUES (%s, 'effect')
    ON CONFLICT DO NOTHING
"""

EFFECT = "INSERT INTO public.effects (event_id, number) VALUES (%s, %s)"


def consume(queue: str, threads: int) -> None:
    """Receive and delete for ever, doing nothing."""
    client, url = sqs(None, queue, connections=threads)
    loops = [Thread(target=_drain, args=(client, url, _ignore)) for _ in range(threads)]
    for loop in loops:
        loop.start()
    for loop in loops:
        loop.join()


def consume_once(dsn: str, queue: str) -> None:
    """The same with a mark and an insert in a transaction of its own for each message."""
    client, url = sqs(None, queue)
    with psycopg.connect(dsn, autocommit=True) as connection:

        def take_effect(message: "MessageTypeDef") -> None:
            event = json.loads(message["Body"])
            with connection.transaction():
                if connection.execute(MARK, [event["id"]]).rowcount:
                    connection.execute(EFFECT, [event["id"], event["payload"]["number"]])

        _drain(client, url, take_effect)


def _ignore(message: "MessageTypeDef") -> None:
    pass


def _drain(client: "SQSClient", url: str, handle: "Callable[[MessageTypeDef], None]") -> None:
    while True:
        messages = client.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=10,
            WaitTimeSeconds=10,
            MessageSystemAttributeNames=["ApproximateReceiveCount", "SentTimestamp"],
            MessageAttributeNames=["All"],
        ).get("Messages")
        if not messages:
            continue
        for message in messages:
            handle(message)
        client.delete_message_batch(
            QueueUrl=url,
            Entries=[
                {"Id": str(index), "ReceiptHandle": message["ReceiptHandle"]}
                for index, message in enumerate(messages)
            ],
        )
