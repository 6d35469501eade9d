"""No floor but what most projects begin with: a relay that goes row by row."""

import psycopg

from benchmarks.floor.client import sqs
from benchmarks.floor.relay import entry

SELECT = """
    SELECT seq, id::text, event_type, aggregate_type, aggregate_id, payload::text,
           to_char(occurred_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
      FROM outboxd.outbox_events
     WHERE published_at IS NULL AND dead_at IS NULL
     ORDER BY seq
     LIMIT 100
       FOR UPDATE SKIP LOCKED
"""

MARK = "UPDATE outboxd.outbox_events SET published_at = clock_timestamp() WHERE seq = %s"


def row_by_row(dsn: str, queue: str) -> None:
    """Publish everything that is pending: a transaction a hundred, a call and an update a row."""
    client, url = sqs(None, queue, parameter_validation=True)
    with psycopg.connect(dsn) as connection:
        while rows := connection.execute(SELECT).fetchall():
            for row in rows:
                message = entry(0, row)
                client.send_message(
                    QueueUrl=url,
                    MessageBody=message["MessageBody"],
                    MessageAttributes=message["MessageAttributes"],
                )
                connection.execute(MARK, [row[0]])
            connection.commit()
