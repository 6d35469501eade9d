"""The benchmarks, with everybody who takes part in them."""

from benchmarks.configurations import RELAY, consuming, taking_effect
from benchmarks.entrants import Entrant, floor, outboxd, peer, queue_of_events
from benchmarks.filling import fill_outbox
from benchmarks.peers import celery, dramatiq, outbox_sqs, sqs_consumer, sqs_workers, taskiq
from benchmarks.place import Place
from benchmarks.roto import roto
from benchmarks.scenarios import Consume, Effect, Relay, Scenario

CONSUME = "consume"
CONSUME_ROTO = "consume, from roto-aws"
EFFECT = "consume with effect"
RELAY_NEAR = "relay"
RELAY_FAR = "relay, 5 ms away"

OUTBOXD = "outboxd"
FLOOR = "floor"
WIDE = "outboxd, concurrency 64"
BATCH = "outboxd, batch 100"
FLOOR_THREADS = "floor, 4 threads"
FLOOR_SENDERS = "floor, 8 threads"
ROW_BY_ROW = "row by row"

LATENCY_SECONDS = 0.005
ROW_BY_ROW_NEAR, ROW_BY_ROW_FAR = 5_000, 1_000
OUTBOX_SQS_NEAR, OUTBOX_SQS_FAR = 4_000, 2_000
FLOOR_EVENTS = 15_000
VARIANT_EVENTS = 10_000
ROTO_EVENTS = 5_000


def _outbox(place: Place, count: int) -> None:
    fill_outbox(place.dsn, count)


def _relays(row_by_row: int, outbox_sqs_: int) -> list[Entrant]:
    return [
        outboxd(RELAY, _outbox),
        floor("relay", _outbox, at_most=FLOOR_EVENTS),
        floor("relay", _outbox, threads=8, name=FLOOR_SENDERS, at_most=FLOOR_EVENTS),
        floor("row by row", _outbox, name=ROW_BY_ROW, at_most=row_by_row),
        peer(outbox_sqs.OUTBOX_SQS, at_most=outbox_sqs_, pending=outbox_sqs.PENDING),
    ]


SCENARIOS: tuple[Scenario, ...] = (
    Consume(
        CONSUME,
        [
            outboxd(consuming(), queue_of_events),
            outboxd(consuming(concurrency=64), queue_of_events, name=WIDE, at_most=VARIANT_EVENTS),
            floor("consume", queue_of_events),
            floor(
                "consume",
                queue_of_events,
                threads=4,
                name=FLOOR_THREADS,
                at_most=VARIANT_EVENTS,
            ),
            peer(sqs_workers.BATCH_QUEUE),
            peer(sqs_workers.JOB_QUEUE),
            peer(sqs_consumer.BATCHES),
            peer(sqs_consumer.MESSAGES),
            peer(celery.THREADS),
            peer(celery.PREFORK),
            peer(dramatiq.DRAMATIQ),
            peer(taskiq.TASKIQ),
        ],
    ),
    Consume(
        CONSUME_ROTO,
        [
            outboxd(consuming(), queue_of_events, at_most=ROTO_EVENTS),
            floor("consume", queue_of_events, at_most=ROTO_EVENTS),
        ],
        server=roto,
    ),
    Effect(
        EFFECT,
        [
            outboxd(taking_effect("effect"), queue_of_events),
            outboxd(
                taking_effect("effects", concurrency=200, batch=100), queue_of_events, name=BATCH
            ),
            floor("effect", queue_of_events),
            peer(sqs_workers.EFFECT),
            peer(sqs_workers.EFFECT_BATCH),
        ],
    ),
    Relay(RELAY_NEAR, _relays(ROW_BY_ROW_NEAR, OUTBOX_SQS_NEAR)),
    Relay(
        RELAY_FAR,
        _relays(ROW_BY_ROW_FAR, OUTBOX_SQS_FAR),
        latency_seconds=LATENCY_SECONDS,
    ),
)
