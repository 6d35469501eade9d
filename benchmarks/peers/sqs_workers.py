"""sqs-workers: two processes, one message or ten at a time, deletes always in tens."""

from benchmarks.peers.peer import Peer

PACKAGES = ("sqs-workers", "psycopg[binary]")
PROGRAM = "sqs_workers_app.py"
PRODUCER = (PROGRAM, "enqueue")

JOB_QUEUE = Peer(name="sqs-workers", packages=PACKAGES, producer=PRODUCER, work=(PROGRAM, "ignore"))

BATCH_QUEUE = Peer(
    name="sqs-workers, batches",
    packages=PACKAGES,
    producer=PRODUCER,
    work=(PROGRAM, "ignore_batch"),
    at_most=10_000,
)

EFFECT = Peer(
    name="sqs-workers, by hand", packages=PACKAGES, producer=PRODUCER, work=(PROGRAM, "effect")
)

EFFECT_BATCH = Peer(
    name="sqs-workers, ten by hand",
    packages=PACKAGES,
    producer=PRODUCER,
    work=(PROGRAM, "effect_batch"),
)
