"""A slice of `python tests/chaos_relay`; docs/chaos.md tells of the rest."""

import random
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.chaos.verdict import Check
from tests.chaos_relay.harming import Cut
from tests.chaos_relay.schedule import Harm, schedule
from tests.chaos_relay.sink import Arrival, Outage
from tests.chaos_relay.verdict import Observed, calm_checks, chaos_checks

CHAOS = Path(__file__).parents[1] / "chaos_relay"


@pytest.mark.system
@pytest.mark.timeout(300)
def test_three_relays_under_harm_lose_nothing_and_keep_the_order(tmp_path: Path) -> None:
    """The seed is a new one each time, and printed: a failure here is had again with it."""
    ended = subprocess.run(
        [sys.executable, str(CHAOS), "--seconds", "45"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def arrival(position: int, *, answered: bool = True, sender: str = "daemon-1") -> Arrival:
    return Arrival(f"event-{position}", "shelf-1", position, sender, answered)


def observed(*arrivals: Arrival) -> Observed:
    events = {f"event-{position}" for position in range(1, 4)}
    return Observed(drained=True, committed=events, stored=events, pending=(), arrivals=arrivals)


def failed(checks: list[Check]) -> set[str]:
    return {check.name.partition(": ")[2] for check in checks if not check.ok}


FLAWLESS = (arrival(1), arrival(2), arrival(3))


def test_a_flawless_run_of_relays_passes() -> None:
    assert failed(calm_checks(observed(*FLAWLESS))) == set()
    assert failed(chaos_checks(observed(*FLAWLESS), [], [])) == set()


@pytest.mark.parametrize(
    ("arrivals", "found"),
    [
        ((arrival(1), arrival(3)), {"lost"}),
        ((*FLAWLESS, arrival(2)), {"duplicates", "duplicates that no harm explains"}),
        ((arrival(1), arrival(3), arrival(2)), {"order inversions of first deliveries"}),
        ((*FLAWLESS, arrival(4)), {"published and not in the outbox"}),
        ((arrival(1), arrival(2, answered=False), arrival(2), arrival(3)), set()),
    ],
    ids=["lost", "repeated", "out of order", "from nowhere", "repeated without an answer"],
)
def test_what_relays_did_wrong_is_found(arrivals: tuple[Arrival, ...], found: set[str]) -> None:
    assert failed(chaos_checks(observed(*arrivals), [], [])) == found


def test_what_was_in_the_air_at_a_kill_may_be_repeated_once_and_nothing_at_a_restart() -> None:
    cut = Cut(harm="kill", after=2, in_a_call=frozenset(), unsettled=frozenset({"event-2"}))
    once = observed(*FLAWLESS, arrival(2))
    twice = observed(*FLAWLESS, arrival(2), arrival(2))

    assert failed(chaos_checks(once, [cut], [])) == set()
    assert "duplicates that no harm explains" in failed(chaos_checks(twice, [cut], []))
    assert "duplicates by restarts of PostgreSQL" in failed(chaos_checks(once, [], [cut]))


@pytest.mark.parametrize("seconds", [30.0, 120.0])
def test_every_harm_is_planned_and_each_outage_is_over_before_the_next(seconds: float) -> None:
    acts = schedule(seconds, random.Random(7))
    outages = [act for act in acts if act.harm is Harm.OUTAGE]

    assert {act.harm for act in acts} == set(Harm)
    assert {act.outage for act in outages} == set(Outage)
    assert all(one.at + one.seconds < other.at for one, other in pairwise(outages))
