"""One run: load, harm, calm, and the count."""

import random
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct
from prometheus_client.parser import text_string_to_metric_families

from outboxd.core.children import children_of
from outboxd.demo.drained import DrainWatch
from outboxd.demo.errors import DemoError
from tests.chaos.aws_faults import injected, put_in_force
from tests.chaos.harming import Harmer
from tests.chaos.ledger import Ledger, copy_table, read_ledger
from tests.chaos.processes import left_behind
from tests.chaos.producing import Producer, producing
from tests.chaos.schedule import CALM_SHARE, schedule
from tests.chaos.verdict import Check, Observed, verdict
from tests.chaos.workload import Workload, workload
from tests.chaos.world import World, world

Say = Callable[[str], None]

LOOK_SECONDS = 0.1
PUBLISHING_SHARE = 0.6
DRAIN_SECONDS = 90.0
GAUGES_SECONDS = 5.0
"""How long /metrics may lag behind: children report twice a second."""

POISON_EVERY_SECONDS = 30.0
ERROR_CHARACTERS = 200


class Options(Struct, frozen=True, kw_only=True):
    """What a run is about; `without` names types of events that are left out."""

    seconds: float
    seed: int
    events: int
    without: frozenset[str] = frozenset()


class Result(Struct, frozen=True, kw_only=True):
    """The verdict, and facts that are neither good nor bad."""

    seed: int
    checks: list[Check]
    facts: dict[str, str]

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks)


def play(options: Options, directory: Path, say: Say) -> Result:
    """Run, and judge. What is left for whoever wants to know more is in `directory`."""
    dice = random.Random(options.seed)
    poison = max(2, round(options.seconds / POISON_EVERY_SECONDS))
    load = workload(options.events, poison, sorted(options.without), dice)
    with world(directory, options.without) as running:
        return _Run(options, running, load, dice, say).to_its_end()


class _Run:
    """The part of a run in which there is a daemon."""

    def __init__(
        self, options: Options, running: World, load: Workload, dice: random.Random, say: Say
    ) -> None:
        self._options = options
        self._world = running
        self._load = load
        self._say = say
        roles = [child.name for child in children_of(running.settings)]
        self._acts = schedule(options.seconds, roles, dice)
        self._fault_dice = random.Random(dice.random())
        self._faults: dict[str, int] = {}

    def to_its_end(self) -> Result:
        options = self._options
        self._world.start_daemon().await_ready(lambda: False)
        put_in_force(self._world.aws.faults, self._fault_dice)
        self._say(f"{0:7.2f} s  AWS faults are in force; {len(self._load.pieces)} events follow")
        harmer = Harmer(self._world, self._acts, self._say)
        with producing(
            self._world.dsn,
            self._load,
            PUBLISHING_SHARE * options.seconds,
            self._world.send_to_work(),
        ) as producer:
            self._through(harmer)
            drained, seconds = self._drain(harmer, producer)
            seen = self._look(harmer, producer, drained)
        ledger = read_ledger(self._world.dsn, self._world.after, self._world.letters())
        self._keep(ledger)
        checks = verdict(ledger, self._load, seen, sorted(options.without))
        return Result(
            seed=options.seed, checks=checks, facts=_facts(ledger, self._load, seen, seconds)
        )

    def _through(self, harmer: Harmer) -> None:
        """The time of the run: harm first, then calm."""
        calm_at = (1 - CALM_SHARE) * self._options.seconds
        while harmer.now < self._options.seconds:
            harmer.work()
            if harmer.now >= calm_at and not self._faults:
                self._faults = injected(self._world.aws.faults)
                self._world.aws.faults.clear()
                self._say(f"{harmer.now:7.2f} s  calm: no more faults")
            time.sleep(LOOK_SECONDS)

    def _drain(self, harmer: Harmer, producer: Producer) -> tuple[bool, float]:
        """Whether nothing waited anywhere in two looks, and when."""
        watch = DrainWatch()
        deadline = harmer.now + DRAIN_SECONDS
        while harmer.now < deadline:
            harmer.work()
            quiet = producer.done and not harmer.waiting and self._quiet()
            if watch.look(harmer.now, quiet=quiet):
                return True, harmer.now
            time.sleep(LOOK_SECONDS)
        return False, harmer.now

    def _quiet(self) -> bool:
        return sum(self._world.messages().values()) == 0 and self._world.backlog() == 0

    def _look(self, harmer: Harmer, producer: Producer, drained: bool) -> Observed:
        unready = self._unready()
        slots, leases = self._gauges()
        left, hidden = self._world.messages(), self._world.in_flight()
        exit_code = self._world.daemon.stop()
        return Observed(
            drained=drained,
            unready=unready,
            committed=frozenset(str(id) for id in producer.committed),
            published_all=producer.done,
            messages_left=left,
            in_flight=hidden,
            slots=slots,
            leases=leases,
            bugs=_bugs(self._world.directory),
            exit_code=exit_code,
            processes_left=len(left_behind([daemon.pid for daemon in self._world.daemons])),
            planned=self._acts,
            done=harmer.done,
            faults=self._faults,
        )

    def _unready(self) -> tuple[str, ...]:
        """Nothing, once it is ready; else the last that it said."""
        try:
            self._world.daemon.await_ready(lambda: False)
        except DemoError as error:
            return (str(error)[-ERROR_CHARACTERS:],)
        return ()

    def _gauges(self) -> tuple[float | None, float | None]:
        """Messages in progress and leases under extension: waited for, since /metrics lags."""
        deadline = time.monotonic() + GAUGES_SECONDS
        while True:
            text = self._world.daemon.ask("/metrics")
            slots = _sum(text, "outboxd_messages_in_progress")
            leases = _sum(text, "outboxd_visibility_tracked_messages")
            if (slots == 0 and leases == 0) or time.monotonic() > deadline:
                return slots, leases
            time.sleep(LOOK_SECONDS)

    def _keep(self, ledger: Ledger) -> None:
        """Letters are gone from their queues, and tables with their server."""
        letters = [msgspec.json.encode(letter).decode() for letter in ledger.letters]
        (self._world.directory / "letters.jsonl").write_text("\n".join(letters))
        for table in ("effects", "events"):
            copy_table(self._world.dsn, table, self._world.directory / f"{table}.csv")


def _facts(ledger: Ledger, load: Workload, seen: Observed, seconds: float) -> dict[str, str]:
    """Numbers that a guarantee allows, or that only tell how hard the run was."""
    again = len(ledger.letters) - len({letter.key for letter in ledger.letters})
    repeated = sum(ledger.after.values()) - len(ledger.after)
    return {
        "events": str(len(ledger.events)),
        "effects": str(sum(ledger.effects.values())),
        "second letters of the same event": str(again),
        'repeated effects with inbox = "after"': str(repeated),
        "poison": str(len(load.poison)),
        "AWS faults by kind": ", ".join(f"{k} {n}" for k, n in sorted(seen.faults.items())),
        "seconds": f"{seconds:.1f}",
    }


def _sum(text: str | None, name: str) -> float | None:
    """The sum of a metric over all its series; None if there is none."""
    if text is None:
        return None
    ours = "".join(line for line in text.splitlines(True) if line.startswith(name))
    samples = [s for family in text_string_to_metric_families(ours) for s in family.samples]
    return sum(sample.value for sample in samples) if samples else None


def _bugs(directory: Path) -> tuple[str, ...]:
    """Lines of the daemon's logs that no outage explains; their ends say what was raised."""
    return tuple(
        f"{log.name}: … {line[-ERROR_CHARACTERS:]}"
        for log in sorted(directory.glob("daemon-*.log"))
        for line in log.read_text(errors="replace").splitlines()
        if "bug in outboxd" in line or line.startswith("Traceback")
    )
