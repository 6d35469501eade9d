"""The floor of the relay: select 500, send them in batches of ten, mark them in one statement."""

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


def relay(dsn: str, endpoint: str, queue: str) -> int:
    """Publish everything that is pending; how many SQS calls that took."""
    client, url = sqs(endpoint, queue)
    calls = last = 0
    with psycopg.connect(dsn, autocommit=True) as connection:
        while rows := connection.execute(SELECT, [last, PAGE]).fetchall():
            for start in range(0, len(rows), BATCH):
                batch = rows[start : start + BATCH]
                client.send_message_batch(
                    QueueUrl=url, Entries=[_entry(index, row) for index, row in enumerate(batch)]
                )
                calls += 1
            connection.execute(MARK, [[row[0] for row in rows]])
            last = rows[-1][0]
    return calls


def _entry(index: int, row: tuple[Any, ...]) -> Any:
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
