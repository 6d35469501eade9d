"""Celery on SQS: late acknowledgement, and nothing switched on that costs and is not needed."""

from benchmarks.peers.peer import Peer

PACKAGES = ("celery[sqs]", "pycurl")
PROGRAM = "celery_app.py"

THREADS = Peer(
    name="celery, 16 threads",
    packages=PACKAGES,
    producer=(PROGRAM, "enqueue"),
    work=(PROGRAM, "threads", "16"),
    at_most=1_500,
)

PREFORK = Peer(
    name="celery, 2 processes",
    packages=PACKAGES,
    producer=(PROGRAM, "enqueue"),
    work=(PROGRAM, "prefork", "2"),
    at_most=1_500,
)
