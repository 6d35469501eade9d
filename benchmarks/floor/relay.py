"""The floor of the relay: select 500, send them in batches of ten, mark them in one statement."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg

from benchmarks.floor.client import sqs

PAGE = 500
BATCH = 10

# By `seq` alone and from where the last page ended: no buckets, no leases, no order of retries.
SELECT = """
    SELECT seq, id::text, event_type, aggregate_type, aggregate_id, payload::text,
           to_char(occurred_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
      FROM outboxd.outbox_events
     WHERE published_at IS NULL AND dead_at IS NULL AND seq > %s
     ORDER BY seq
     LIMIT %s
"""

MARK = """
    UPDATE outboxd.outbox_events
       SET published_at = clock_timestamp()
     WHERE seq = ANY (%s) AND published_at IS NULL
"""


def relay(dsn: str, queue: str, threads: int) -> None:
    """Publish everything that is pending, with so many calls in flight."""
    client, url = sqs(None, queue, connections=threads)

    def send(batch: Sequence[tuple[Any, ...]]) -> None:
        client.send_message_batch(
            QueueUrl=url, Entries=[entry(index, row) for index, row in enumerate(batch)]
        )

    last = 0
    with (
        psycopg.connect(dsn, autocommit=True) as connection,
        ThreadPoolExecutor(threads) as pool,
    ):
        # One thread is the cheapest way to send while nothing has to be waited for.
        over = map if threads == 1 else pool.map
        while rows := connection.execute(SELECT, [last, PAGE]).fetchall():
            batches = [rows[start : start + BATCH] for start in range(0, len(rows), BATCH)]
            for _ in over(send, batches):
                pass
            connection.execute(MARK, [[row[0] for row in rows]])
            last = rows[-1][0]


def entry(index: int, row: tuple[Any, ...]) -> Any:
    """A message as the relay of outboxd writes it."""
    _, id_, event_type, aggregate_type, aggregate_id, payload, occurred_at = row
    return {
        "Id": str(index),
        "MessageBody": (
            f'{{"id":"{id_}","type":"{event_type}","aggregate_type":"{aggregate_type}",'
            f'"aggregate_id":"{aggregate_id}","occurred_at":"{occurred_at}","payload":{payload}}}'
        ),
        "MessageAttributes": {
            "event_type": {"DataType": "String", "StringValue": event_type},
            "aggregate_id": {"DataType": "String", "StringValue": aggregate_id},
        },
    }
