"""Node's sqs-consumer: four instances in one process, which share one client."""

from benchmarks.peers.peer import Peer

BATCHES = Peer(
    name="sqs-consumer, batches", packages=(), work=("sqs_consumer.mjs", "handleMessageBatch")
)

MESSAGES = Peer(
    name="sqs-consumer",
    packages=(),
    work=("sqs_consumer.mjs", "handleMessage"),
    at_most=6_000,
)
