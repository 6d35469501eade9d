"""How metrics of several processes become one: pure rules about names, samples and sums."""

import math
import re
from collections.abc import Iterable
from enum import Enum
from typing import TypeAlias

from outboxd.channels.protocol import Family, Sample

Labels: TypeAlias = tuple[tuple[str, str], ...]
"""A label set, sorted, without the `le` of a histogram's buckets."""

Point: TypeAlias = tuple[str, str]
"""One line within a label set: the sample's name and, for a bucket, its `le`."""

Series: TypeAlias = dict[Labels, dict[Point, float]]

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*\Z")
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*\Z")
_SUFFIXES = {
    "counter": ("_total",),
    "gauge": ("",),
    "histogram": ("_bucket", "_sum", "_count"),
}
_GLOBAL_GAUGES = frozenset(
    {
        "outboxd_queue_messages",
        "outboxd_queue_dlq_messages",
        "outboxd_outbox_pending_rows",
        "outboxd_outbox_dead_rows",
        "outboxd_inbox_kept_seconds",
    }
)
_STATES_OF_HEALTH = frozenset({"outboxd_outbox_destination_up"})


class Merge(Enum):
    """How the values of several processes become one value."""

    SUM = "sum"
    LARGEST = "largest"
    SMALLEST = "smallest"
    EARLIEST = "earliest"


def merge_of(family: Family) -> Merge:
    """The rule for a family.

    Gauges that describe something outside of the process, a table or a queue, are the same number
    seen by several: their sum would mean nothing. Among start times the earliest tells of the one
    that is stuck; the latest would hide it behind a busy neighbour.
    """
    if family.type != "gauge":
        return Merge.SUM
    if "oldest_" in family.name and family.name.endswith("_start_timestamp_seconds"):
        return Merge.EARLIEST
    if family.name in _STATES_OF_HEALTH:
        return Merge.SMALLEST
    if (
        family.name in _GLOBAL_GAUGES
        or family.name.endswith("_timestamp_seconds")
        or "oldest_" in family.name
    ):
        return Merge.LARGEST
    return Merge.SUM


def merged(rule: Merge, one: float, other: float) -> float:
    """Two processes' values as one; for a start time 0 means that nothing runs."""
    match rule:
        case Merge.SUM:
            return one + other
        case Merge.LARGEST:
            return max(one, other)
        case Merge.SMALLEST:
            return min(one, other)
        case Merge.EARLIEST:
            return min(one, other) if one and other else one or other


def add(series: Series, more: Series, rule: Merge) -> None:
    """Merge `more` into `series`."""
    for labels, points in more.items():
        into = series.setdefault(labels, {})
        for point, value in points.items():
            into[point] = merged(rule, into[point], value) if point in into else value


def names_of(family: Family) -> frozenset[str]:
    """Every name that the family's lines may bear, and its own."""
    return frozenset({family.name, *(family.name + end for end in _SUFFIXES[family.type])})


def bounds_of(series: Series) -> frozenset[str]:
    """The bounds of a histogram's buckets; none in anything else."""
    return frozenset(bound for points in series.values() for _, bound in points if bound)


def well_named(family: Family) -> bool:
    """Whether a scraper can read a family of this name and type."""
    return family.type in _SUFFIXES and _NAME.match(family.name) is not None


def series_of(family: Family) -> Series:
    """The family's samples by label set; what a scraper would choke on is left out."""
    series: Series = {}
    names = {family.name + suffix for suffix in _SUFFIXES[family.type]}
    for sample in family.samples:
        if sample.name not in names or math.isnan(sample.value):
            continue
        if not all(_LABEL.match(label) for label in sample.labels):
            continue
        bound = sample.labels.get("le", "") if family.type == "histogram" else ""
        series.setdefault(_labels(sample, family.type), {})[sample.name, bound] = sample.value
    return series


def _labels(sample: Sample, type_: str) -> Labels:
    return tuple(
        sorted(
            (label, value)
            for label, value in sample.labels.items()
            if not (label == "le" and type_ == "histogram")
        )
    )


def samples_of(series: Series) -> Iterable[Sample]:
    """The samples again, each label set's lines together, as OpenMetrics demands."""
    for labels, points in series.items():
        for (name, bound), value in points.items():
            yield Sample(name, dict(labels) | ({"le": bound} if bound else {}), value)
