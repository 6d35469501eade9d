"""taskiq with taskiq-aio-sqs: two workers of up to 100 tasks."""

from benchmarks.peers.peer import Peer

TASKIQ = Peer(
    name="taskiq",
    packages=("taskiq", "taskiq-aio-sqs"),
    producer=("taskiq_app.py",),
    work=(
        "-m", "taskiq", "worker", "taskiq_app:broker",
        "--workers", "2", "--max-async-tasks", "100", "--log-level", "WARNING",
    ),
    at_most=3_000,
)  # fmt: skip
