"""Rounds: every scenario with both subjects, in turns."""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from benchmarks import subjects
from benchmarks.figures import DAEMON, FLOOR, Figures, Round, figures_of
from benchmarks.local_sqs import LocalSqs
from benchmarks.measuring import measure
from benchmarks.place import QUEUE, Grounds, Place
from benchmarks.scenarios import Scenario
from benchmarks.subjects import Subject


def play(
    scenarios: Sequence[Scenario],
    events: int,
    *,
    rounds: int,
    limit_seconds: float,
    grounds: Grounds,
    say: Callable[[str], None],
) -> list[Round]:
    """At most `rounds`, and at least one; no further one that would end after the limit.

    Raises BenchmarkError.
    """
    began = time.monotonic()
    played: list[Round] = []
    for number in range(rounds):
        if number and (time.monotonic() - began) * (number + 1) / number > limit_seconds:
            say(f"no more than {number} rounds fit into {limit_seconds:g} s on this machine now")
            break
        say(f"round {number + 1} of {rounds}")
        played.append(_round(scenarios, events, number, grounds, say))
    return played


def _round(
    scenarios: Sequence[Scenario],
    events: int,
    number: int,
    grounds: Grounds,
    say: Callable[[str], None],
) -> Round:
    # In turns, and each first as often as the other: what else the machine does comes and goes,
    # and should hit both alike.
    order = (DAEMON, FLOOR) if number % 2 == 0 else (FLOOR, DAEMON)
    runs: Round = {}
    for scenario in scenarios:
        for subject in order:
            say(f"  {scenario.name}: {subject}")
            runs[scenario.name, subject] = _run(scenario, subject, scenario.share(events), grounds)
    return runs


def _run(scenario: Scenario, name: str, count: int, grounds: Grounds) -> Figures:
    with grounds.place(scenario.configuration) as place, LocalSqs(place.endpoint, QUEUE) as sqs:
        scenario.fill(place, count)
        with _start(scenario, name, place) as subject:
            measured = measure(subject, scenario.phases(place, count, sqs), place.database_pid)
            scenario.check(place, count, sqs)
            return figures_of(measured, count, subject.calls(count))


def _start(scenario: Scenario, name: str, place: Place) -> AbstractContextManager[Subject]:
    if name == DAEMON:
        return subjects.daemon(place.configuration, place.settings)
    return subjects.floor(scenario.name, place.dsn, place.endpoint, QUEUE)
