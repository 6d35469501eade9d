"""outbox-sqs: batches of 100, its best, in a loop without its pauses, on its own table."""

from benchmarks.peers.peer import Peer

PROGRAM = "outbox_sqs_app.py"

OUTBOX_SQS = Peer(
    name="outbox-sqs",
    packages=("outbox-sqs", "psycopg[binary]"),
    producer=(PROGRAM, "insert"),
    work=(PROGRAM, "relay"),
    at_most=5_000,
)

PENDING = "SELECT EXISTS (SELECT 1 FROM public.outbox_events WHERE status <> 'published')"
