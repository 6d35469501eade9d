"""Makes figures of what was measured, and rows of the figures of all rounds."""

from collections.abc import Iterable, Sequence
from statistics import median
from typing import TypeAlias

import msgspec

from benchmarks.measuring import Measured

DAEMON = "outboxd"
FLOOR = "floor"
RATIO = "outboxd / floor"

RATE = "events per second"
THRIFT = "events per CPU-second"
DATABASE_CPU = "PostgreSQL CPU ms per 1,000"
CALLS = "SQS calls per 1,000"

RATIOS = (RATE, THRIFT, DATABASE_CPU, CALLS)

Figures: TypeAlias = dict[str, float]
"""One run's, by metric."""

Round: TypeAlias = dict[tuple[str, str], Figures]
"""One of each, by benchmark and subject."""


class Row(msgspec.Struct, frozen=True):
    """One metric of one subject over all rounds; `spread` is the largest minus the smallest."""

    benchmark: str
    subject: str
    metric: str
    median: float
    spread: float


def figures_of(measured: Measured, count: int, calls: int) -> Figures:
    """What a run with `count` events took."""
    thousands = count / 1000
    return {
        RATE: count / measured.seconds,
        THRIFT: count / measured.total_cpu_seconds,
        DATABASE_CPU: measured.database_cpu_seconds * 1000 / thousands,
        CALLS: calls / thousands,
        **{
            f"CPU ms per 1,000: {name}": seconds * 1000 / thousands
            for name, seconds in measured.cpu_seconds.items()
        },
        **{f"peak RSS MB: {name}": size for name, size in measured.peak_megabytes.items()},
    }


def rows_of(rounds: Sequence[Round]) -> list[Row]:
    """The rows of both subjects, and of their ratios, which are taken within each round."""
    rows: list[Row] = []
    for benchmark in dict.fromkeys(name for name, _ in rounds[0]):
        daemon = [played[benchmark, DAEMON] for played in rounds]
        floor = [played[benchmark, FLOOR] for played in rounds]
        ratios = [_ratios(ours, its) for ours, its in zip(daemon, floor, strict=True)]
        for subject, figures in ((DAEMON, daemon), (FLOOR, floor), (RATIO, ratios)):
            rows += _rows(benchmark, subject, figures)
    return rows


def _ratios(ours: Figures, its: Figures) -> Figures:
    """What the floor took too little of to be measured has no ratio."""
    return {metric: ours[metric] / its[metric] for metric in RATIOS if its[metric]}


def _rows(benchmark: str, subject: str, figures: Sequence[Figures]) -> Iterable[Row]:
    values: dict[str, list[float]] = {}
    for run in figures:
        for metric, value in run.items():
            values.setdefault(metric, []).append(value)
    return [
        Row(benchmark, subject, metric, median(found), max(found) - min(found))
        for metric, found in values.items()
    ]
