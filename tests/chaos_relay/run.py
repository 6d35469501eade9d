"""One run: a calm part, a part with harm, and the count after each."""

import random
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from tests.chaos.processes import left_behind
from tests.chaos.run import Result
from tests.chaos.verdict import Check
from tests.chaos_relay.harming import Harmer
from tests.chaos_relay.producing import Producers, producing
from tests.chaos_relay.schedule import Act, schedule
from tests.chaos_relay.verdict import (
    Observed,
    calm_checks,
    chaos_checks,
    harm_checks,
    repeated_after,
)
from tests.chaos_relay.world import World, world

Say = Callable[[str], None]

RELAYS = 3
CALM_SHARE = 0.3
LOOK_SECONDS = 0.05
DRAIN_SECONDS = 90.0


class Options(Struct, frozen=True, kw_only=True):
    """What a run is about."""

    seconds: float
    seed: int


def play(options: Options, directory: Path, say: Say) -> Result:
    """Run, and judge. What is left for whoever wants to know more is in `directory`."""
    dice = random.Random(options.seed)
    acts = schedule(options.seconds * (1 - CALM_SHARE), dice)
    with (
        world(directory, random.Random(dice.random())) as running,
        producing(running.dsn, random.Random(dice.random())) as producers,
    ):
        return _Run(options, acts, running, producers, say).to_its_end()


class _Run:
    """The part of a run in which there are relays."""

    def __init__(
        self,
        options: Options,
        acts: tuple[Act, ...],
        running: World,
        producers: Producers,
        say: Say,
    ) -> None:
        self._options = options
        self._acts = acts
        self._world = running
        self._producers = producers
        self._say = say
        self._checks: list[Check] = []

    def to_its_end(self) -> Result:
        for _ in range(RELAYS):
            self._world.start_daemon()
        for daemon in self._world.daemons:
            daemon.supervisor.await_ready(lambda: False)
        self._calm()
        harmer = self._chaos()
        book = self._world.book
        codes = [daemon.supervisor.stop() for daemon in self._world.daemons]
        pids = [supervisor.pid for supervisor in self._world.started]
        self._checks += [
            *harm_checks(self._acts, harmer.done),
            _same("exit codes of the daemons", [0] * len(codes), codes),
            _same("processes left behind", 0, len(left_behind(pids))),
            _same("events marked dead", 0, self._dead()),
        ]
        facts = {
            "events": str(len({each.event for each in book.arrivals})),
            "repeated after a harm": ", ".join(
                f"{harm} {times}" for harm, times in repeated_after(book.arrivals, harmer.cuts)
            ),
            "failed entries": str(book.failed_entries),
            "calls refused in outages": str(book.refused_calls),
            "in a send call at a harm": str(sum(len(cut.in_a_call) for cut in harmer.cuts)),
            "accepted and not marked at a harm": str(
                sum(len(cut.unsettled) for cut in harmer.cuts)
            ),
            "accepted and not marked at restarts of PostgreSQL": str(
                sum(len(cut.unsettled) for cut in harmer.restarts)
            ),
            "accepted without an answer": str(sum(not each.answered for each in book.arrivals)),
        }
        return Result(seed=self._options.seed, checks=self._checks, facts=facts)

    def _calm(self) -> None:
        """Entries fail, and nothing else; a relay comes and goes."""
        self._say("calm: one entry in ten fails")
        self._producers.go()
        time.sleep(self._options.seconds * CALM_SHARE)
        self._say(f"calm: buckets of each relay: {self._world.owners()}")
        self._checks += calm_checks(self._look())

    def _chaos(self) -> Harmer:
        harmer = Harmer(self._world, self._acts, self._say)
        self._producers.go()
        end = self._options.seconds * (1 - CALM_SHARE)
        while harmer.now < end or harmer.waiting:
            harmer.work()
            time.sleep(LOOK_SECONDS)
        self._checks += chaos_checks(self._look(), harmer.cuts, harmer.restarts)
        return harmer

    def _look(self) -> Observed:
        """Have everything published, and count."""
        self._producers.rest()
        drained = self._world.drained(DRAIN_SECONDS)
        return Observed(
            drained=drained,
            committed=self._producers.committed,
            stored=self._world.stored(),
            pending=self._world.pending(),
            arrivals=tuple(self._world.book.arrivals),
        )

    def _dead(self) -> int:
        return len(self._world.dead())


def _same(name: str, expected: object, got: object) -> Check:
    return Check(name=name, expected=str(expected), got=str(got), ok=expected == got)
