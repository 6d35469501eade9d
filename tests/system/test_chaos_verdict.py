"""The chaos test finds what it is there for: each of these runs has one thing wrong with it."""

import random
from collections import Counter
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from tests.chaos.ledger import Ledger, Letter
from tests.chaos.report import as_json, as_table
from tests.chaos.run import Result
from tests.chaos.schedule import CALM_SHARE, Act, Harm, schedule
from tests.chaos.verdict import Check, Observed, verdict
from tests.chaos.workload import HANDLERS, ORDERED, PUBLISHED_POISON, Workload, workload

ROLES = ("relay", "extender", "consumer:work/1", "consumer:work/2", "consumer:ordered/1")

ACTS = (
    Act(at=1.0, harm=Harm.KILL, target="relay"),
    Act(at=2.0, harm=Harm.FREEZE, target="relay", seconds=3.0),
)


def load() -> Workload:
    return workload(300, 2, (), random.Random(1))


LOAD = load()


def flawless() -> tuple[Ledger, Observed]:
    """What is found after a run in which everything went as promised."""
    events = {str(piece.event.id): piece.event.type for piece in LOAD.pieces}
    parents = [id for id, kind in events.items() if kind == "parent"]
    events |= {f"child of {id}": "child" for id in parents}
    effects = Counter(
        (id, handler)
        for id, kind in events.items()
        if id not in LOAD.poison or kind == "half"
        for handler in HANDLERS.get(kind, ())
    )
    letters = tuple(_letter(key, reason) for key, reason in LOAD.poison.items())
    ledger = Ledger(
        events=events,
        unpublished=0,
        effects=effects,
        after=Counter(id for id, kind in events.items() if kind == "after"),
        inversions=0,
        letters=letters,
    )
    seen = Observed(
        drained=True,
        unready=(),
        committed=frozenset(str(piece.event.id) for piece in LOAD.pieces),
        published_all=True,
        messages_left={"work": 0},
        in_flight={"work": 0},
        slots=0.0,
        leases=0.0,
        bugs=(),
        exit_code=0,
        processes_left=0,
        done=ACTS,
        planned=ACTS,
        faults={"reset": 3},
    )
    return ledger, seen


def _letter(key: str, reason: str) -> Letter:
    malformed = reason == "malformed"
    return Letter("work-dlq", key if malformed else "{}", reason, None if malformed else key, "")


def broken(checks: list[Check]) -> set[str]:
    return {check.name for check in checks if not check.ok}


def test_a_flawless_run_passes() -> None:
    ledger, seen = flawless()
    assert broken(verdict(ledger, LOAD, seen, ())) == set()


def _innocent(kind: str) -> str:
    return next(
        str(piece.event.id)
        for piece in LOAD.pieces
        if piece.event.type == kind and piece.poison is None
    )


def _poisoned(reason: str) -> str:
    return next(key for key, each in LOAD.poison.items() if each == reason)


def _half() -> str:
    return next(str(p.event.id) for p in LOAD.pieces if p.event.type == "half")


def _without(counter: Counter[Any], key: object) -> Counter[Any]:
    return Counter({k: n for k, n in counter.items() if k != key})


LEDGER, _ = flawless()
_DOUBLED = LEDGER.effects + Counter({(_innocent("two"), "two_second"): 1})
_POISON_DONE = LEDGER.effects + Counter({(_poisoned("max_attempts"), "fail"): 1})
_UNDONE = _without(LEDGER.effects, (_innocent("fast.sync"), "fast_sync"))
_HALF_UNDONE = _without(LEDGER.effects, (_half(), "half_good"))
_GONE = {id: kind for id, kind in LEDGER.events.items() if id != _innocent("slow.sync")}
_CHILDLESS = {
    id: kind for id, kind in LEDGER.events.items() if id != f"child of {_innocent('parent')}"
}
_UNREAD = tuple(x for x in LEDGER.letters if x.key != _poisoned("malformed"))
_CRASHED = _poisoned("crash")
_MISTAKEN = tuple(
    msgspec.structs.replace(x, reason="max_attempts") if x.key == _CRASHED else x
    for x in LEDGER.letters
)
_VICTIM = (*LEDGER.letters, _letter(_innocent("fast.sync"), "max_attempts"))


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"effects": _UNDONE}, {"lost: no effect"}),
        ({"effects": _HALF_UNDONE}, {"lost: no effect"}),
        ({"after": Counter[str]()}, {"lost: no effect"}),
        ({"effects": _DOUBLED}, {"taken effect twice"}),
        ({"effects": _POISON_DONE}, {"effects of poison"}),
        ({"events": _GONE}, {"lost from the outbox"}),
        ({"events": _CHILDLESS}, {"events published by handlers"}),
        ({"unpublished": 1}, {"events left in the outbox"}),
        ({"inversions": 1}, {"order inversions within a FIFO group"}),
        (
            {"letters": _UNREAD},
            {"poison in the dead-letter queues", "poison without a letter"},
        ),
        ({"letters": _MISTAKEN}, {"poison with a wrong reason"}),
        ({"letters": _VICTIM}, {"innocent dead letters"}),
        ({"letters": LEDGER.letters * 2}, set()),
    ],
)
def test_what_is_wrong_in_the_ledger_is_found(change: dict[str, Any], found: set[str]) -> None:
    ledger, seen = flawless()
    changed = msgspec.structs.replace(ledger, **change)
    assert broken(verdict(changed, LOAD, seen, ())) == found


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"drained": False}, "drained in time"),
        ({"unready": ("the supervisor was not ready",)}, "not ready again"),
        ({"messages_left": {"work": 1}}, "messages left in the queues"),
        ({"in_flight": {"work": 1}}, "messages still invisible"),
        ({"slots": 1.0}, "slots still taken (/metrics)"),
        ({"slots": None}, "slots still taken (/metrics)"),
        ({"leases": 2.0}, "leases still extended (/metrics)"),
        ({"bugs": ("daemon-1.log: …",)}, 'log lines that say "bug"'),
        ({"exit_code": 5}, "exit code of the daemon"),
        ({"processes_left": 1}, "processes left behind"),
        ({"done": ACTS[1:]}, "kill relay"),
        ({"done": ACTS[:1]}, "freeze"),
        ({"faults": {}}, "AWS faults"),
        ({"published_all": False}, "events published by the producer"),
        ({"committed": frozenset[str]()}, "events published by the producer"),
    ],
)
def test_what_is_wrong_at_the_end_is_found(change: dict[str, Any], found: str) -> None:
    ledger, seen = flawless()
    changed = msgspec.structs.replace(seen, **change)
    assert broken(verdict(ledger, LOAD, changed, ())) == {found}


def test_a_report_names_what_failed_and_a_culprit() -> None:
    ledger, seen = flawless()
    changed = msgspec.structs.replace(ledger, effects=_UNDONE)
    result = Result(seed=3, checks=verdict(changed, LOAD, seen, ()), facts={"events": "300"})
    assert f"    {_innocent('fast.sync')} fast_sync" in as_table(result)
    assert msgspec.json.decode(as_json(result))["ok"] is False


@pytest.mark.parametrize("seconds", [30.0, 60.0, 180.0])
@pytest.mark.parametrize("seed", range(20))
def test_harm_is_done_before_the_calm_and_every_role_has_its_share(
    seconds: float, seed: int
) -> None:
    acts = schedule(seconds, ROLES, random.Random(seed))
    assert acts == schedule(seconds, ROLES, random.Random(seed))
    assert all(one.at <= other.at for one, other in pairwise(acts))
    for act in acts:
        lasts = act.seconds if act.harm in (Harm.FREEZE, Harm.FREEZE_SUPERVISOR) else 0.0
        assert 0 < act.at <= act.at + lasts <= seconds * (1 - CALM_SHARE) + 1e-6
    kills = Counter(act.target for act in acts if act.harm is Harm.KILL)
    assert set(kills) == set(ROLES)
    if seconds == 180:
        assert min(kills.values()) >= 3
        assert kills.total() >= 20
    assert [a.target for a in acts if a.harm is Harm.RESTART_POSTGRES] == ["fast", "immediate"]
    (frozen,) = [act for act in acts if act.harm is Harm.FREEZE_SUPERVISOR]
    (killed,) = [act for act in acts if act.harm is Harm.KILL_SUPERVISOR]
    assert frozen.at + frozen.seconds < killed.at


def test_a_workload_is_the_same_for_a_seed_and_numbers_every_group() -> None:
    assert load() == LOAD
    positions: dict[str, list[int]] = {}
    for piece in LOAD.pieces:
        if piece.event.type == ORDERED:
            positions.setdefault(piece.event.aggregate_id, []).append(
                piece.event.payload["position"]
            )
    assert all(found == list(range(1, len(found) + 1)) for found in positions.values())


def test_there_is_poison_of_every_kind_and_none_of_those_left_out() -> None:
    kinds = {piece.event.type for piece in LOAD.pieces if piece.poison is not None}
    assert kinds == {"fast.sync" if kind == "unfit" else kind for kind in PUBLISHED_POISON}
    fewer = workload(300, 2, ("ordered", "crash"), random.Random(1))
    assert not {p.event.type for p in fewer.pieces} & {"ordered", "ordered.reject", "crash"}
    assert "crash" not in fewer.poison.values()
