"""Makes figures of what was measured, and rows of the figures of all rounds."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import TypeAlias

import msgspec

from benchmarks.catalogue import OUTBOXD
from benchmarks.measuring import Measured

THRIFT = "events per CPU-second"
RATE = "events per second"
CPU = "CPU ms per 1,000"
CALLS = "SQS calls per 1,000"
PSS = "peak PSS MB"
RSS = "peak RSS MB"
STARTED = "CPU s before the first event"
DATABASE_CPU = "PostgreSQL CPU ms per 1,000"
SQS_CPU = "SQS server CPU ms per 1,000"
EVENTS = "events of a run"

PROCESS_CPU = "CPU ms per 1,000: {}"
PROCESS_RSS = "peak RSS MB: {}"
PROCESS_PRIVATE = "private MB: {}"

RATIO = f"{OUTBOXD} / {{}}"
"""Subject of a row that compares within each round."""

RATIOS = (THRIFT, RATE, CALLS)

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


def figures_of(measured: Measured, count: int) -> Figures:
    """What a run with `count` events took."""
    thousands = count / 1000
    figures = {
        THRIFT: count / measured.cpu_seconds,
        RATE: count / measured.seconds,
        CPU: measured.cpu_seconds * 1000 / thousands,
        PSS: measured.peak_pss,
        RSS: measured.peak_rss,
        STARTED: measured.started_cpu_seconds,
        DATABASE_CPU: measured.database_cpu_seconds * 1000 / thousands,
        SQS_CPU: measured.sqs_cpu_seconds * 1000 / thousands,
        EVENTS: float(count),
    }
    if measured.calls:
        figures[CALLS] = sum(measured.calls.values()) / thousands
    for operation, number in measured.calls.items():
        if number:
            figures[f"{operation} per 1,000"] = number / thousands
    return figures | _by_process(measured, thousands)


def _by_process(measured: Measured, thousands: float) -> Figures:
    return {
        **{
            PROCESS_CPU.format(name): seconds * 1000 / thousands
            for name, seconds in measured.cpu_by_process.items()
        },
        **{PROCESS_RSS.format(name): size for name, size in measured.peak_rss_by_process.items()},
        **{
            PROCESS_PRIVATE.format(name): size for name, size in measured.private_by_process.items()
        },
    }


def rows_of(rounds: Sequence[Round]) -> list[Row]:
    """The rows of all subjects, and of outboxd's ratio to each, taken within each round."""
    rows: list[Row] = []
    for benchmark, subject in dict.fromkeys(key for played in rounds for key in played):
        runs = [played[benchmark, subject] for played in rounds if (benchmark, subject) in played]
        rows += _rows(benchmark, subject, runs)
        if subject == OUTBOXD:
            continue
        ratios = [
            _ratios(played[benchmark, OUTBOXD], played[benchmark, subject])
            for played in rounds
            if {(benchmark, OUTBOXD), (benchmark, subject)} <= played.keys()
        ]
        rows += _rows(benchmark, RATIO.format(subject), ratios)
    return rows


def _ratios(ours: Mapping[str, float], its: Mapping[str, float]) -> Figures:
    """What one of them has none of has no ratio."""
    return {
        metric: ours[metric] / its[metric]
        for metric in RATIOS
        if ours.get(metric) and its.get(metric)
    }


def _rows(benchmark: str, subject: str, figures: Sequence[Figures]) -> Iterable[Row]:
    values: dict[str, list[float]] = {}
    for run in figures:
        for metric, value in run.items():
            values.setdefault(metric, []).append(value)
    return [
        Row(benchmark, subject, metric, median(found), max(found) - min(found))
        for metric, found in values.items()
    ]
