"""Puts the work there before it is measured."""

import http.client
from contextlib import closing
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import msgspec
import psycopg
from psycopg.rows import TupleRow

from benchmarks.errors import BenchmarkError
from benchmarks.floor.client import sqs
from benchmarks.workload import AGGREGATE_TYPE, EVENT_TYPE, Envelope, events, payloads

BATCH = 10

SEND = {
    "Content-Type": "application/x-amz-json-1.0",
    "X-Amz-Target": "AmazonSQS.SendMessageBatch",
    # A signature's form, for the region that it names.
    "Authorization": "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/sqs/aws4_request, "
    "SignedHeaders=host, Signature=0",
}

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
    """Send events as the relay would have sent them.

    By hand and unsigned, which no stand-in minds: with boto3 filling took longer than consuming.
    """
    client, url = sqs(endpoint, queue)
    client.close()
    head = b'{"QueueUrl":' + msgspec.json.encode(url) + b',"Entries":'
    with closing(http.client.HTTPConnection(urlsplit(endpoint).netloc)) as connection:
        for entries in _batches(count):
            connection.request("POST", "/", head + entries + b"}", SEND)
            answer = connection.getresponse()
            said = answer.read()
            if answer.status != 200 or b'"Failed"' in said:
                raise BenchmarkError(f"the queue could not be filled: {said.decode()}")


@cache
def _batches(count: int) -> list[bytes]:
    """The entries of each request; the same for every run, so they are made once."""
    waiting = [*events(count)]
    return [
        msgspec.json.encode([_entry(n, e) for n, e in enumerate(waiting[start : start + BATCH])])
        for start in range(0, count, BATCH)
    ]


def _entry(number: int, event: Envelope) -> dict[str, Any]:
    return {
        "Id": str(number),
        "MessageBody": msgspec.json.encode(event).decode(),
        "MessageAttributes": {
            "event_type": {"DataType": "String", "StringValue": event.type},
            "aggregate_id": {"DataType": "String", "StringValue": event.aggregate_id},
        },
    }
