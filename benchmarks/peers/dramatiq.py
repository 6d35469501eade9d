"""dramatiq with dramatiq-sqs: two processes of eight threads."""

from benchmarks.peers.peer import Peer

DRAMATIQ = Peer(
    name="dramatiq",
    packages=("dramatiq", "dramatiq-sqs"),
    producer=("dramatiq_app.py",),
    work=("-m", "dramatiq", "dramatiq_app", "--processes", "2", "--threads", "8"),
    at_most=3_000,
)
