"""Which harm is done when: decided beforehand by a seed, so that a bad run can be had again."""

import random
from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

CALM_SHARE = 0.2
"""The last part of the time, without faults: what is left must then be worked off."""

KILLS_PER_ROLE = 3
KILLS = 22
FREEZES = 9
FULL_SECONDS = 180.0
"""For a run of this length; shorter ones are harmed less often, but as densely."""

SHORTEST_FREEZE, LONGEST_FREEZE = 2.0, 20.0
LONGEST_SUPERVISOR_FREEZE = 15.0


class Harm(StrEnum):
    """What can be done to a daemon from outside."""

    KILL = "kill"
    FREEZE = "freeze"
    RESTART_POSTGRES = "restart postgres"
    KILL_SUPERVISOR = "kill supervisor"
    FREEZE_SUPERVISOR = "freeze supervisor"


class Act(Struct, frozen=True, kw_only=True, order=True):
    """One harm. `target` is the role of a child, or the mode in which PostgreSQL is stopped;
    `seconds` is how long a process stays frozen, or something stays away."""

    at: float
    harm: Harm
    target: str = ""
    seconds: float = 0.0


def schedule(seconds: float, roles: Sequence[str], dice: random.Random) -> tuple[Act, ...]:
    """All acts in the order of their times, in seconds from the start."""
    end = seconds * (1 - CALM_SHARE)
    share = seconds / FULL_SECONDS
    acts = [
        *_kills(roles, max(1, round(KILLS_PER_ROLE * share)), round(KILLS * share), end, dice),
        *_freezes(roles, max(2, round(FREEZES * share)), end, dice),
        *_restarts(end, dice),
        Act(at=_around(0.5, end, dice), harm=Harm.KILL_SUPERVISOR, seconds=dice.uniform(0, 3)),
        _freeze_of_supervisor(end, dice),
    ]
    return tuple(sorted(acts))


def _kills(
    roles: Sequence[str], each: int, total: int, end: float, dice: random.Random
) -> list[Act]:
    """Every role `each` times, and then by chance alone up to `total`."""
    targets = [role for role in roles for _ in range(each)]
    targets += dice.choices(roles, k=max(0, total - len(targets)))
    return [
        Act(at=dice.uniform(0.05 * end, end), harm=Harm.KILL, target=target) for target in targets
    ]


def _freezes(roles: Sequence[str], count: int, end: float, dice: random.Random) -> list[Act]:
    """Each ends before the calm begins."""
    longest = min(LONGEST_FREEZE, end / 3)
    return [
        Act(
            at=dice.uniform(0.05 * end, end - seconds),
            harm=Harm.FREEZE,
            target=roles[number % len(roles)],
            seconds=seconds,
        )
        for number in range(count)
        for seconds in [dice.uniform(min(SHORTEST_FREEZE, longest), longest)]
    ]


def _freeze_of_supervisor(end: float, dice: random.Random) -> Act:
    """Long enough, in a full run, to hear from no child for more than the heartbeat deadline."""
    longest = min(LONGEST_SUPERVISOR_FREEZE, end / 7)
    seconds = dice.uniform(longest / 2, longest)
    return Act(at=_around(0.15, end, dice), harm=Harm.FREEZE_SUPERVISOR, seconds=seconds)


def _restarts(end: float, dice: random.Random) -> list[Act]:
    return [
        Act(
            at=_around(place, end, dice),
            harm=Harm.RESTART_POSTGRES,
            target=mode,
            seconds=dice.uniform(0, 3),
        )
        for place, mode in ((0.3, "fast"), (0.75, "immediate"))
    ]


def _around(place: float, end: float, dice: random.Random) -> float:
    return end * (place + dice.uniform(-0.1, 0.1))
