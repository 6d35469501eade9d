"""The verdict: one row for each thing that must hold, with what was found."""

from collections import Counter
from collections.abc import Collection, Sequence

from msgspec import Struct

from tests.chaos.verdict import LISTED, Check
from tests.chaos_relay.harming import Cut
from tests.chaos_relay.schedule import Act
from tests.chaos_relay.sink import Arrival


class Observed(Struct, frozen=True, kw_only=True):
    """What was seen at the end of one part of a run."""

    drained: bool
    committed: Collection[str]
    stored: Collection[str]
    pending: Collection[str]
    arrivals: Sequence[Arrival]


def calm_checks(seen: Observed) -> list[Check]:
    """Without a fault nothing may be repeated."""
    return [
        *_of_events("calm", seen),
        _empty("calm: duplicates", _repeated(seen.arrivals)),
    ]


def chaos_checks(seen: Observed, cuts: Sequence[Cut], restarts: Sequence[Cut]) -> list[Check]:
    """After harm only what was in the air may be; after a restart of the database nothing."""
    repeats = _repeats(seen.arrivals)
    allowed = may_repeat(seen.arrivals, cuts)
    unexplained = [
        f"{event}: {times} more, {allowed[event]} allowed"
        for event, times in repeats.items()
        if times > allowed[event]
    ]
    in_a_call = sum(len(cut.in_a_call) for cut in cuts)
    unsettled = sum(len(cut.unsettled) for cut in cuts)
    unanswered = sum(1 for each in seen.arrivals if not each.answered)
    limit = in_a_call + unsettled + unanswered
    duplicates = repeats.total()
    return [
        *_of_events("chaos", seen),
        _empty("chaos: duplicates that no harm explains", unexplained),
        _empty(
            "chaos: duplicates by restarts of PostgreSQL", _after_restarts(seen, cuts, restarts)
        ),
        Check(
            name="chaos: duplicates",
            expected=f"<= {limit}",
            got=str(duplicates),
            ok=duplicates <= limit,
        ),
    ]


def harm_checks(planned: Sequence[Act], done: Sequence[Act]) -> list[Check]:
    """Harm that was planned and could not be done would make the rest worth less."""
    wanted, had = Counter(str(act.harm) for act in planned), Counter(str(act.harm) for act in done)
    return [
        Check(name=name, expected=str(times), got=str(had[name]), ok=had[name] == times)
        for name, times in sorted(wanted.items())
    ]


def may_repeat(arrivals: Sequence[Arrival], cuts: Sequence[Cut]) -> Counter[str]:
    """How often each event may have been sent again."""
    allowed = Counter(each.event for each in arrivals if not each.answered)
    for cut in cuts:
        allowed.update(cut.in_a_call)
        allowed.update(cut.unsettled)
    return allowed


def repeated_after(arrivals: Sequence[Arrival], cuts: Sequence[Cut]) -> list[tuple[str, int]]:
    """What each kind of harm did repeat, of what it might have."""
    by_harm: Counter[str] = Counter()
    for cut in cuts:
        later = {each.event for each in arrivals[cut.after :]}
        by_harm[cut.harm] += len(later & cut.unsettled) + len(
            _repeats(arrivals).keys() & cut.in_a_call
        )
    unanswered = {each.event for each in arrivals if not each.answered}
    by_harm["no answer"] = len(_repeats(arrivals).keys() & unanswered)
    return sorted(by_harm.items())


def _after_restarts(seen: Observed, cuts: Sequence[Cut], restarts: Sequence[Cut]) -> list[str]:
    explained = may_repeat(seen.arrivals, cuts)
    return sorted(
        event
        for cut in restarts
        for event in cut.unsettled & {each.event for each in seen.arrivals[cut.after :]}
        if event not in explained
    )


def inversions(arrivals: Sequence[Arrival]) -> list[str]:
    """First deliveries that came after a later event of their aggregate, and whose they were: two
    senders tell of a stale owner, one of an event that it passed over."""
    last: dict[str, Arrival] = {}
    seen: set[str] = set()
    wrong: list[str] = []
    for each in arrivals:
        if each.event in seen:
            continue
        seen.add(each.event)
        before = last.get(each.aggregate)
        if before is not None and each.position < before.position:
            wrong.append(
                f"{each.aggregate}: {each.position} ({each.sender}) after {before.position} "
                f"({before.sender})"
            )
        else:
            last[each.aggregate] = each
    return wrong


def _of_events(part: str, seen: Observed) -> list[Check]:
    arrived = {each.event for each in seen.arrivals}
    stored = set(seen.stored)
    return [
        Check(
            name=f"{part}: drained in time",
            expected="yes",
            got="yes" if seen.drained else "no",
            ok=seen.drained,
        ),
        _empty(f"{part}: committed and not in the outbox", sorted(set(seen.committed) - stored)),
        _empty(f"{part}: lost", sorted(stored - arrived)),
        _empty(f"{part}: published and not in the outbox", sorted(arrived - stored)),
        _empty(f"{part}: left in the outbox", sorted(seen.pending)),
        _empty(f"{part}: order inversions of first deliveries", inversions(seen.arrivals)),
    ]


def _repeats(arrivals: Sequence[Arrival]) -> Counter[str]:
    times = Counter(each.event for each in arrivals)
    return Counter({event: count - 1 for event, count in times.items() if count > 1})


def _repeated(arrivals: Sequence[Arrival]) -> list[str]:
    return sorted(_repeats(arrivals))


def _empty(name: str, culprits: Sequence[str]) -> Check:
    return Check(
        name=name,
        expected="0",
        got=str(len(culprits)),
        ok=not culprits,
        culprits=tuple(culprits[:LISTED]),
    )
