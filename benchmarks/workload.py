"""What is relayed and consumed: events of about 1 kB that do not compress."""

import random
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec

EVENT_TYPE = "benchmark.measured"
AGGREGATE_TYPE = "benchmark"
AGGREGATES = 1000
NOTE_CHARACTERS = 770
"""With it the message's body, envelope included, has about 1,000 bytes."""

NOTES = 64
"""Different texts, so that no cache on the way sees one value only."""

SEED = 20


class Payload(msgspec.Struct):
    """What a handler gets."""

    number: int
    note: str


class Envelope(msgspec.Struct):
    """A message's body as the relay writes it."""

    id: str
    type: str
    aggregate_type: str
    aggregate_id: str
    occurred_at: datetime
    payload: Payload


def payloads(count: int) -> Iterator[tuple[str, Payload]]:
    """Payloads with the ids of their aggregates; neighbours are of different aggregates."""
    dice = random.Random(SEED)
    notes = [f"{dice.getrandbits(NOTE_CHARACTERS * 4):0{NOTE_CHARACTERS}x}" for _ in range(NOTES)]
    for number in range(count):
        yield f"aggregate-{number % AGGREGATES}", Payload(number, notes[number % NOTES])


def events(count: int) -> Iterator[Envelope]:
    """The same as events that have just occurred."""
    dice = random.Random(SEED + 1)
    now = datetime.now(UTC)
    for aggregate, payload in payloads(count):
        # As random as PostgreSQL's: the order of ids decides what the inbox's index costs.
        id_ = str(uuid.UUID(int=dice.getrandbits(128), version=4))
        yield Envelope(id_, EVENT_TYPE, AGGREGATE_TYPE, aggregate, now, payload)
