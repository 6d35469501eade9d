"""Rounds: every scenario with all who take part in it, in turns."""

import time
from collections.abc import Callable, Iterator, Sequence

from benchmarks.entrants import Entrant
from benchmarks.errors import BenchmarkError
from benchmarks.figures import Figures, Round, figures_of
from benchmarks.measuring import measure
from benchmarks.place import Grounds
from benchmarks.scenarios import Scenario


class Absences:
    """Who does not take part, and why; said once."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self.reasons: dict[str, str] = {}

    def add(self, name: str, reason: str) -> None:
        """Of a reason in many lines the first and the last are kept; what is between names files
        of this machine."""
        if name not in self.reasons:
            lines = [line.strip() for line in reason.splitlines() if line.strip()]
            self.reasons[name] = " ... ".join(dict.fromkeys((lines[0], lines[-1])))
            self._say(f"without {name}: {reason}")


def play(
    scenarios: Sequence[Scenario],
    events: int | None,
    *,
    rounds: int,
    limit_seconds: float,
    grounds: Grounds,
    absences: Absences,
    say: Callable[[str], None],
) -> list[Round]:
    """At most `rounds`, and at least one; no further one that would end after the limit, and
    nothing at all that would begin after it.

    Raises BenchmarkError, but not for a peer: one that fails is absent from then on.
    """
    began = time.monotonic()
    played: list[Round] = []
    for number in range(rounds):
        if number and (time.monotonic() - began) * (number + 1) / number > limit_seconds:
            say(f"no more than {number} rounds fit into {limit_seconds:g} s on this machine now")
            break
        say(f"round {number + 1} of {rounds}")
        runs: Round = {}
        for scenario, entrant in _turns(scenarios, number):
            if time.monotonic() - began > limit_seconds:
                say(f"  {scenario.name}: {entrant.name} left out, {limit_seconds:g} s are over")
            elif entrant.name not in absences.reasons:
                figures = _tried(scenario, entrant, events, grounds, absences, say)
                if figures is not None:
                    runs[scenario.name, entrant.name] = figures
        played.append(runs)
    return played


def _turns(scenarios: Sequence[Scenario], number: int) -> Iterator[tuple[Scenario, Entrant]]:
    for scenario in scenarios:
        # In turns, and each first as often as last: what else the machine does comes and goes, and
        # should hit all alike.
        order = scenario.entrants if number % 2 == 0 else reversed(scenario.entrants)
        for entrant in order:
            yield scenario, entrant


def _tried(
    scenario: Scenario,
    entrant: Entrant,
    events: int | None,
    grounds: Grounds,
    absences: Absences,
    say: Callable[[str], None],
) -> Figures | None:
    """None for a peer that failed."""
    began = time.monotonic()
    try:
        figures = _run(scenario, entrant, events, grounds)
    except BenchmarkError as error:
        if entrant.peer is None:
            raise BenchmarkError(f"{scenario.name}: {entrant.name}: {error}") from error
        absences.add(entrant.name, f"it failed: {error}")
        return None
    say(f"  {scenario.name}: {entrant.name}, {time.monotonic() - began:.0f} s")
    return figures


def _run(scenario: Scenario, entrant: Entrant, events: int | None, grounds: Grounds) -> Figures:
    count = scenario.share(entrant, events)
    with grounds.place(entrant.configuration, scenario.server) as place, place.view() as view:
        scenario.prepare(entrant, place, count, view)
        with entrant.start(place) as subject:
            work = scenario.work(entrant, place, count, view)
            measured = measure(subject, work, place, view)
            scenario.check(entrant, place, count, view)
            if (complaint := subject.complaint()) is not None:
                raise BenchmarkError(complaint)
            return figures_of(measured, count)
