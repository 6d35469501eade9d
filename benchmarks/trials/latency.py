"""From an event's commit to the start of its handler, at a steady rate."""

import math
import random
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import ClassVar

import msgspec
import psycopg

from benchmarks.errors import BenchmarkError
from benchmarks.figures import Figures, Round
from benchmarks.peers.peer import Peer
from benchmarks.place import Place
from benchmarks.trials import configurations as c
from benchmarks.trials.daemons import await_fact, ready_daemon
from benchmarks.trials.notes import BEGAN, notes
from benchmarks.trials.trial import Stage
from benchmarks.workload import AGGREGATE_TYPE, EVENT_TYPE, payloads
from outboxd.core.clock import boottime
from outboxd.demo.private_folder import private_folder

NAME = "latency"
WITH_WAKE_UP = "outboxd, wake_up"
WITHOUT = "outboxd"

AFTER_REST = "first after a rest ms"
HALF, MOST, LONGEST = "p50 ms", "p99 ms", "longest ms"
COMMITTED = "commits per second"

PER_SECOND = 50
REST_SECONDS = 3.0
"""Longer than a relay takes to fall asleep, or to look as seldom as it ever does."""

WARM_UP = PER_SECOND
"""Events that are not counted: a second."""

LATE_SECONDS = 20.0
SEED = 50

ENABLE = "ALTER TABLE outboxd.outbox_events ENABLE TRIGGER outbox_events_wake_sleepers"

INSERT = """
    INSERT INTO outboxd.outbox_events (event_type, aggregate_type, aggregate_id, payload)
    VALUES (%s, %s, %s, %s)
"""


class Latency:
    """Commits at random moments, 50 in a second on average, to a relay and a pool of one daemon."""

    family: ClassVar[str] = NAME
    peers: ClassVar[tuple[Peer, ...]] = ()

    def play(self, stage: Stage) -> list[Round]:
        """One round: each figure is of some hundred events already."""
        runs: Round = {}
        for subject in (WITHOUT, WITH_WAKE_UP):
            if stage.takes_part(subject):
                runs[NAME, subject] = _run(stage, wake_up=subject == WITH_WAKE_UP)
        return [runs]


def _run(stage: Stage, *, wake_up: bool) -> Figures:
    with private_folder("outboxd-notes-") as folder:
        path = folder / "notes"
        configuration = c.head() + c.relay(wake_up=wake_up) + c.pool(notes=str(path))
        with stage.grounds.place(configuration) as place:
            if wake_up:
                with closing(psycopg.connect(place.dsn, autocommit=True)) as owner:
                    owner.execute(ENABLE)
            return _measured(place, path, stage.extent.latency_seconds)


def _measured(place: Place, path: Path, seconds: float) -> Figures:
    with ready_daemon(place) as daemon:
        time.sleep(REST_SECONDS)
        began = time.monotonic()
        committed = _commit(place.dsn, WARM_UP + int(PER_SECOND * seconds))
        took = time.monotonic() - began
        await_fact(
            lambda: len(notes(path)) >= len(committed), "all were handled", daemon, LATE_SECONDS
        )
    started = {note.number: note.at for note in notes(path) if note.what == BEGAN}
    return {**_figures(committed, started), COMMITTED: len(committed) / took}


def _commit(dsn: str, count: int) -> dict[int, float]:
    """Commit so many events; the moment right after each commit.

    The gaps are as between independent visitors (exponential). Even ones of 20 ms would stay in
    step with the relay's own 20 ms, and measure one phase of it only.
    """
    dice = random.Random(SEED)
    committed: dict[int, float] = {}
    with closing(psycopg.connect(dsn, autocommit=True)) as connection:
        due = time.monotonic()
        for aggregate, payload in payloads(count):
            due += dice.expovariate(PER_SECOND)
            time.sleep(max(0.0, due - time.monotonic()))
            body = msgspec.json.encode(payload).decode()
            connection.execute(INSERT, [EVENT_TYPE, AGGREGATE_TYPE, aggregate, body])
            committed[payload.number] = boottime()
    return committed


def _figures(committed: Mapping[int, float], started: Mapping[int, float]) -> Figures:
    if committed.keys() != started.keys():
        raise BenchmarkError(f"{len(started)} events were handled of {len(committed)}")
    first, *others = ((started[number] - committed[number]) * 1000 for number in committed)
    delays = others[WARM_UP:]
    return {
        AFTER_REST: first,
        HALF: percentile(delays, 50),
        MOST: percentile(delays, 99),
        LONGEST: max(delays),
    }


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that so many per cent of all do not exceed (nearest rank)."""
    rank = math.ceil(len(values) * percent / 100)
    return sorted(values)[max(rank, 1) - 1]
