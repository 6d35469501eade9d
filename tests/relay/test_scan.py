"""Where reads begin: never behind what a read before has left out."""

from typing import NamedTuple

from outboxd.actors.relay.ledger import Ledger
from outboxd.actors.relay.scan import Scan
from outboxd.actors.relay.surroundings import Memory, Surroundings
from outboxd.core.chains import Chains, Parked, Waiting
from outboxd.core.holdings import Holdings
from outboxd.core.horizon import Sample
from outboxd.core.outbox import StoredEvent
from outboxd.core.windows import SLOW_SECONDS
from tests.relay.scene import Facts

BUCKET = 1
MOVING, PARKED = BUCKET, BUCKET + 64
"""Two aggregates of one bucket."""


class Answers(NamedTuple):
    """A database whose transactions all have ended."""

    samples: list[Sample]

    async def sample(self) -> Sample:
        return self.samples.pop(0)


def event(key: int, seq: int) -> StoredEvent:
    return StoredEvent(
        key, seq, str(seq), "order.placed", "order", str(key), "{}", None, "", 0.0, 0, 0.0, None
    )


async def test_the_read_that_makes_reads_slow_passes_over_nothing_that_moved_when_it_began() -> (
    None
):
    """The aggregate that moves is left out of the read. When it has rested by the time of the
    answer, its next events, 178 to 187, are in the table only."""
    now = [100.0]
    holdings, chains = Holdings(), Chains(lambda each: each.key)
    holdings.gained({BUCKET: 1}, deadline=1e9)
    around = Surroundings(Facts(), lambda: now[0], lambda: 0.5)
    scan = Scan(Memory(holdings, chains, Ledger()), around)
    chains.park(PARKED, Parked(Waiting.BACKOFF, float("inf"), 50))
    database = Answers([Sample(10, 10, 500), Sample(11, 11, 500)])
    await scan.sample(database)  # type: ignore[arg-type]  # the rest is not asked
    now[0] += 10.0
    await scan.sample(database)  # type: ignore[arg-type]
    chains.admit([event(MOVING, 177)])
    look = scan.plan(list(holdings))
    assert look is not None

    chains.advance(MOVING)
    now[0] += 1.5 * SLOW_SECONDS
    scan.read(look, [], ours=1)

    (holding,) = holdings
    assert holding.start < 178
