"""The verdict: one row for each thing that must hold, with what was found."""

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from tests.chaos.ledger import Ledger, Letter
from tests.chaos.schedule import Act, Harm
from tests.chaos.workload import ORDERED, Workload

LISTED = 5
"""So many of the culprits are named; the directory of the run has them all."""


class Check(Struct, frozen=True, kw_only=True):
    """One thing that must hold. `culprits` are the first of those that broke it."""

    name: str
    expected: str
    got: str
    ok: bool
    culprits: tuple[str, ...] = ()


class Observed(Struct, frozen=True, kw_only=True):
    """What was seen of the daemon and its queues at the end of a run."""

    drained: bool
    unready: tuple[str, ...]
    committed: frozenset[str]
    published_all: bool
    messages_left: Mapping[str, int]
    in_flight: Mapping[str, int]
    slots: float | None
    leases: float | None
    bugs: tuple[str, ...]
    exit_code: int
    processes_left: int
    done: Sequence[Act]
    planned: Sequence[Act]
    faults: Mapping[str, int]


def verdict(ledger: Ledger, load: Workload, seen: Observed, without: Sequence[str]) -> list[Check]:
    """Every check, in the order in which one would ask."""
    checks = [
        *_of_events(ledger, load, seen),
        *_of_letters(ledger, load.poison),
        *_of_the_end(seen),
        *_of_harm(seen),
    ]
    if ORDERED not in without:
        checks.insert(5, _none("order inversions within a FIFO group", ledger.inversions))
    return checks


def _of_events(ledger: Ledger, load: Workload, seen: Observed) -> list[Check]:
    poison = load.poison
    missing = ledger.missing(poison)
    doubled = [pair for pair, count in ledger.effects.items() if count > 1]
    ghosts = [pair for pair in ledger.effects if pair[0] in poison and pair[1] != "half_good"]
    kinds = Counter(ledger.events.values())
    pieces = len(load.pieces)
    return [
        _same("events published by the producer", pieces, len(seen.committed), seen.published_all),
        _empty("lost from the outbox", sorted(seen.committed - ledger.events.keys())),
        _empty("lost: no effect", [f"{id} {handler}" for id, handler in missing]),
        _empty("taken effect twice", [f"{id} {handler}" for id, handler in doubled]),
        _empty("effects of poison", [f"{id} {handler}" for id, handler in ghosts]),
        _same("events published by handlers", kinds["parent"], kinds["child"]),
        _none("events left in the outbox", ledger.unpublished),
    ]


def _of_letters(ledger: Ledger, poison: Mapping[str, str]) -> list[Check]:
    by_key: dict[str, list[Letter]] = {}
    for letter in ledger.letters:
        by_key.setdefault(letter.key, []).append(letter)
    innocent = [x for key, letters in by_key.items() if key not in poison for x in letters]
    wrong = [
        letter
        for key, letters in by_key.items()
        for letter in letters
        if key in poison and letter.reason != poison[key]
    ]
    return [
        _same("poison in the dead-letter queues", len(poison), len(poison.keys() & by_key.keys())),
        _empty("poison without a letter", sorted(poison.keys() - by_key.keys())),
        _empty("poison with a wrong reason", [_told(letter, poison) for letter in wrong]),
        _empty("innocent dead letters", [_told(letter, poison) for letter in innocent]),
    ]


def _of_the_end(seen: Observed) -> list[Check]:
    left = sum(seen.messages_left.values())
    hidden = sum(seen.in_flight.values())
    return [
        _same("drained in time", "yes", "yes" if seen.drained else "no"),
        _empty("not ready again", seen.unready),
        _none("messages left in the queues", left),
        _none("messages still invisible", hidden),
        _none("slots still taken (/metrics)", seen.slots),
        _none("leases still extended (/metrics)", seen.leases),
        _empty('log lines that say "bug"', seen.bugs),
        _none("exit code of the daemon", seen.exit_code),
        _none("processes left behind", seen.processes_left),
    ]


def _of_harm(seen: Observed) -> list[Check]:
    """Harm that was planned and could not be done would make the rest worth less."""
    planned, done = _counted(seen.planned), _counted(seen.done)
    faults = sum(seen.faults.values())
    return [
        *(_same(name, count, done[name]) for name, count in sorted(planned.items())),
        Check(name="AWS faults", expected="> 0", got=str(faults), ok=faults > 0),
    ]


def _counted(acts: Sequence[Act]) -> Counter[str]:
    return Counter(
        f"{act.harm} {act.target}" if act.harm is Harm.KILL else str(act.harm) for act in acts
    )


def _told(letter: Letter, poison: Mapping[str, str]) -> str:
    expected = poison.get(letter.key)
    wanted = "" if expected is None else f" instead of {expected}"
    return f"{letter.key[:100]} {letter.reason}{wanted}: {letter.error[:200]}"


def _same(name: str, expected: object, got: object, also: bool = True) -> Check:
    return Check(
        name=name, expected=str(expected), got=str(got), ok=str(expected) == str(got) and also
    )


def _none(name: str, got: float | None) -> Check:
    text = "unknown" if got is None else f"{got:g}"
    return Check(name=name, expected="0", got=text, ok=got == 0)


def _empty(name: str, culprits: Sequence[str]) -> Check:
    return Check(
        name=name,
        expected="0",
        got=str(len(culprits)),
        ok=not culprits,
        culprits=tuple(culprits[:LISTED]),
    )
