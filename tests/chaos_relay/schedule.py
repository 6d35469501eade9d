"""Which harm is done when: decided beforehand by a seed, so that a bad run can be had again."""

import random
from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct

from tests.chaos_relay.sink import Outage
from tests.chaos_relay.world import LEASE_SECONDS

EVERY_SECONDS = 6.0
"""One harm in so many seconds of the time for harm, beside the outages."""

LONGEST_DATABASE_OUTAGE_SECONDS = 1.5
"""Short of a lease, so that what is accepted meanwhile is still its relay's to mark."""


class Harm(StrEnum):
    """What can be done to relays from outside."""

    KILL = "kill a relay"
    FREEZE = "freeze a relay for a moment"
    FREEZE_LONG = "freeze a relay beyond its lease"
    KILL_SUPERVISOR = "kill a supervisor"
    STOP = "stop a daemon and start another"
    RESTART_DATABASE = "restart PostgreSQL"
    OUTAGE = "outage of the destination"


class Act(Struct, frozen=True, kw_only=True):
    """One harm; `which` chooses a daemon, `seconds` is how long it lasts."""

    at: float
    harm: Harm
    which: int = 0
    seconds: float = 0.0
    outage: Outage | None = None
    mode: str = ""


def schedule(seconds: float, dice: random.Random) -> tuple[Act, ...]:
    """All acts in the order of their times, in seconds from the start of the harm.

    Each time slot has one harm to a process; outages of the destination overlap with them.
    """
    harms = list(_harms(max(5, round(seconds / EVERY_SECONDS)), dice))
    slot = seconds / (len(harms) + 1)
    acts = [
        _act(harm, slot * (number + 0.2 + dice.random() * 0.4), number, dice)
        for number, harm in enumerate(harms)
    ]
    kinds = list(Outage)
    dice.shuffle(kinds)
    part = seconds / (len(kinds) + 1)
    acts += [
        Act(
            at=part * (number + dice.random() * 0.5),
            harm=Harm.OUTAGE,
            seconds=dice.uniform(0.5, min(6.0, part * 0.4)),
            outage=kind,
        )
        for number, kind in enumerate(kinds)
    ]
    return tuple(sorted(acts, key=lambda act: act.at))


def _harms(count: int, dice: random.Random) -> Iterator[Harm]:
    """Each at least once; kills most often, since they cost most."""
    must = [each for each in Harm if each is not Harm.OUTAGE]
    more = dice.choices(
        [Harm.KILL, Harm.FREEZE, Harm.FREEZE_LONG, Harm.KILL_SUPERVISOR, Harm.STOP],
        weights=[6, 2, 2, 1, 1],
        k=max(0, count - len(must)),
    )
    harms = must + more
    dice.shuffle(harms)
    yield from harms


def _act(harm: Harm, at: float, number: int, dice: random.Random) -> Act:
    which = dice.randrange(1000)
    match harm:
        case Harm.FREEZE:
            return Act(at=at, harm=harm, which=which, seconds=dice.uniform(1.0, 4.0))
        case Harm.FREEZE_LONG:
            seconds = LEASE_SECONDS + dice.uniform(1.0, 4.0)
            return Act(at=at, harm=harm, which=which, seconds=seconds)
        case Harm.RESTART_DATABASE:
            mode = "immediate" if number % 2 else "fast"
            seconds = dice.uniform(0.0, LONGEST_DATABASE_OUTAGE_SECONDS)
            return Act(at=at, harm=harm, seconds=seconds, mode=mode)
        case _:
            return Act(at=at, harm=harm, which=which)
