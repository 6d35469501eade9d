"""The metrics of all children as one set, whose counters never go backwards."""

import logging
import time
from collections.abc import Callable, Collection

import msgspec

from outboxd.channels.protocol import Address, Family, MetricsSnapshot, Sample
from outboxd.core.recent import Recent
from outboxd.supervision.series import (
    Labels,
    Merge,
    Series,
    add,
    bounds_of,
    merge_of,
    names_of,
    samples_of,
    series_of,
    well_named,
)

log = logging.getLogger(__name__)

LABEL_SETS_PER_FAMILY = 1000
"""One handler that uses customer ids as a label must not break the endpoint for everybody."""

REMEMBERED_DEAD = 1024

DROPPED = "outboxd_metrics_series_dropped"
LAST_SNAPSHOT = "outboxd_child_last_metrics_timestamp_seconds"


class _Declaration(msgspec.Struct, frozen=True):
    family: Family  # without samples
    merge: Merge


class _Snapshot(msgspec.Struct):
    sequence: int
    series: dict[str, Series]


class MetricsBook:
    """Adds up what the children report, the dead ones included.

    An exported value is what dead incarnations had reached plus what the living ones say, so a
    counter survives its process. A killed process takes along what it counted since its last
    snapshot: these numbers are for watching, never for accounting.
    """

    def __init__(
        self,
        *,
        reserved: Collection[str] = (),
        label_sets: int = LABEL_SETS_PER_FAMILY,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._reserved = frozenset(reserved) | {DROPPED, f"{DROPPED}_total", LAST_SNAPSHOT}
        self._limit = label_sets
        self._wall_clock = wall_clock
        self._declared: dict[str, _Declaration] = {}
        self._names: set[str] = set()  # those that lines have
        self._admitted: dict[str, set[Labels]] = {}
        self._live: dict[Address, _Snapshot] = {}
        self._retired: dict[str, Series] = {}
        self._dead: Recent[Address] = Recent(REMEMBERED_DEAD)
        self._dropped: dict[str, int] = {}
        self._last_snapshot_at: dict[str, float] = {}
        self._complained: Recent[str] = Recent(LABEL_SETS_PER_FAMILY)

    def took(self, sender: Address, snapshot: MetricsSnapshot) -> None:
        """Keep a child's newest snapshot; an older or a posthumous one is ignored."""
        known = self._live.get(sender)
        if sender in self._dead or (known is not None and known.sequence > snapshot.sequence):
            return
        self._last_snapshot_at[sender.name] = self._wall_clock()
        self._dropped.setdefault(sender.name, 0)
        series: dict[str, Series] = {}
        for family in snapshot.families:
            if self._acceptable(sender, family):
                within = self._within_limit(sender, family.name, series_of(family))
                self._drop_other_buckets(family.name, within)
                series[family.name] = within
        self._live[sender] = _Snapshot(snapshot.sequence, series)

    def retire(self, sender: Address) -> None:
        """An incarnation is gone: its counters and histograms stay, its gauges go."""
        self._dead.add(sender)
        last = self._live.pop(sender, None)
        if last is None:
            return
        for name, series in last.series.items():
            if self._declared[name].family.type != "gauge":
                add(self._retired.setdefault(name, {}), series, Merge.SUM)

    def forget(self, child: str) -> None:
        """A slot is gone for good: nothing fresh is to be expected of it."""
        self._last_snapshot_at.pop(child, None)

    def families(self) -> tuple[Family, ...]:
        """Everything as it is now: the dead's sums plus the living."""
        merged: dict[str, Series] = {}
        for name, series in self._retired.items():
            add(merged.setdefault(name, {}), series, Merge.SUM)
        for snapshot in self._live.values():
            for name, series in snapshot.series.items():
                add(merged.setdefault(name, {}), series, self._declared[name].merge)
        exported = (
            msgspec.structs.replace(
                self._declared[name].family, samples=tuple(samples_of(merged[name]))
            )
            for name in sorted(merged)
        )
        return (*exported, *self._about_snapshots())

    def _acceptable(self, sender: Address, family: Family) -> bool:
        if not well_named(family) or family.name in self._reserved:
            self._complain("a child's metric is refused for its name or type", sender, family)
            return False
        declared = self._declared.get(family.name)
        if declared is None:
            return self._declare(sender, family)
        if declared.family.type != family.type:
            self._complain("a child's metric is refused: another type is known", sender, family)
            return False
        return True

    def _declare(self, sender: Address, family: Family) -> bool:
        names = names_of(family)
        if not names.isdisjoint(self._names | self._reserved):
            # A gauge x_total beside a counter x: one line with two types spoils the whole scrape.
            self._complain(
                "a child's metric is refused: its lines have another's name", sender, family
            )
            return False
        self._names |= names
        bare = msgspec.structs.replace(family, samples=())
        self._declared[family.name] = _Declaration(bare, merge_of(family))
        return True

    def _drop_other_buckets(self, name: str, series: Series) -> None:
        """New code may cut a histogram otherwise. The dead's buckets cannot be added to such, so
        they go, and the histogram begins anew as it would in a new daemon."""
        retired = self._retired.get(name)
        if retired and bounds_of(series) not in (bounds_of(retired), frozenset()):
            del self._retired[name]

    def _complain(self, what: str, sender: Address, family: Family) -> None:
        key = f"{sender.name} {family.name}"
        if key in self._complained:  # every snapshot repeats it, the log need not
            return
        self._complained.add(key)
        log.warning(
            what, extra={"child": sender.name, "metric": family.name, "metric_type": family.type}
        )

    def _within_limit(self, sender: Address, name: str, series: Series) -> Series:
        admitted = self._admitted.setdefault(name, set())
        kept: Series = {}
        for labels, points in series.items():
            if labels not in admitted and len(admitted) >= self._limit:
                self._dropped[sender.name] += 1
                continue
            admitted.add(labels)
            kept[labels] = points
        return kept

    def _about_snapshots(self) -> tuple[Family, Family]:
        return (
            Family(
                DROPPED,
                "counter",
                f"Series left out of a snapshot, since a metric had {self._limit} label sets",
                tuple(
                    Sample(f"{DROPPED}_total", {"child": child}, float(count))
                    for child, count in self._dropped.items()
                ),
            ),
            Family(
                LAST_SNAPSHOT,
                "gauge",
                "Unix time of the last snapshot: how fresh all series of this child are",
                tuple(
                    Sample(LAST_SNAPSHOT, {"child": child}, at)
                    for child, at in self._last_snapshot_at.items()
                ),
            ),
        )
