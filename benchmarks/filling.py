"""Puts the work there before it is measured."""

from collections.abc import Sequence

import msgspec
import psycopg
from psycopg.rows import TupleRow

from benchmarks.floor.client import sqs
from benchmarks.workload import AGGREGATE_TYPE, EVENT_TYPE, Envelope, events, payloads

BATCH = 10

COPY = """
    COPY outboxd.outbox_events (event_type, aggregate_type, aggregate_id, payload) FROM STDIN
"""


def fill_outbox(dsn: str, count: int) -> None:
    """Commit events, and leave the table as a busy one is: vacuumed and with statistics."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        insert_events(connection, count)
        connection.execute("VACUUM ANALYZE outboxd.outbox_events")


def insert_events(connection: psycopg.Connection[TupleRow], count: int) -> None:
    """Events of many aggregates, in one statement."""
    with connection.cursor() as cursor, cursor.copy(COPY) as copy:
        for aggregate, payload in payloads(count):
            body = msgspec.json.encode(payload).decode()
            copy.write_row((EVENT_TYPE, AGGREGATE_TYPE, aggregate, body))


def fill_queue(endpoint: str, queue: str, count: int) -> None:
    """Send events as the relay would have sent them."""
    client, url = sqs(endpoint, queue)
    waiting = [*events(count)]
    for start in range(0, count, BATCH):
        batch: Sequence[Envelope] = waiting[start : start + BATCH]
        client.send_message_batch(
            QueueUrl=url,
            Entries=[
                {
                    "Id": str(index),
                    "MessageBody": msgspec.json.encode(event).decode(),
                    "MessageAttributes": {
                        "event_type": {"DataType": "String", "StringValue": event.type},
                        "aggregate_id": {"DataType": "String", "StringValue": event.aggregate_id},
                    },
                }
                for index, event in enumerate(batch)
            ],
        )
    client.close()
