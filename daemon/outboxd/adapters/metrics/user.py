"""Metrics of handlers, kept beside those of their pool."""

import logging
import threading
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeAlias

import msgspec
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from outboxd.adapters.metrics.user_lines import Kind, Line
from outboxd.adapters.metrics.user_rules import (
    MAX_LABEL_SETS,
    MAX_METRICS,
    Refusal,
    Why,
    check_buckets,
    check_labels,
    check_name,
    check_text,
)
from outboxd.core.recent import Recent
from outboxd.ports.user_metrics import NOWHERE, UserCounter, UserGauge, UserHistogram

log = logging.getLogger(__name__)

REMEMBERED_COMPLAINTS = 200

Labels: TypeAlias = Mapping[str, str | int]


class _Declared(msgspec.Struct):
    """What the first use of a name has fixed, and its lines by their labels' values."""

    kind: Kind
    labels: tuple[str, ...]
    buckets: tuple[float, ...]
    family: Counter | Gauge | Histogram
    lines: dict[tuple[str, ...], Line]


class PoolUserMetrics:
    """Keeps `ports.user_metrics.UserMetrics` in the registry of a pool.

    A line that is known costs a look into a dictionary. `strict` has what is refused raised, for
    tests of handlers.
    """

    def __init__(self, registry: CollectorRegistry, queue: str, *, strict: bool = False) -> None:
        self._registry = registry
        self._queue = queue
        self._strict = strict
        self._lock = threading.Lock()
        self._declared: dict[str, _Declared] = {}
        self._known: dict[Hashable, Line] = {}
        self._complained: Recent[tuple[str, Why]] = Recent(REMEMBERED_COMPLAINTS)
        refused = Counter(
            "outboxd_user_metrics_refused",
            "Uses of context.metrics that could not be counted; the log names them",
            ("queue", "reason"),
            registry=registry,
        )
        self._refused = {why: refused.labels(queue, why.value) for why in Why}

    def counter(self, name: str, text: str = "", /, **labels: str | int) -> UserCounter:
        return self._line(Counter, name, text, (), labels) or NOWHERE

    def gauge(self, name: str, text: str = "", /, **labels: str | int) -> UserGauge:
        return self._line(Gauge, name, text, (), labels) or NOWHERE

    def histogram(
        self, name: str, text: str = "", /, *, buckets: Sequence[float] = (), **labels: str | int
    ) -> UserHistogram:
        return self._line(Histogram, name, text, buckets, labels) or NOWHERE

    def _line(
        self, kind: Kind, name: str, text: str, buckets: Sequence[float], labels: Labels
    ) -> Line | None:
        try:
            # With the values' types: 1 and True are equal, and two labels.
            key = (kind, name, *buckets, *labels.items(), *map(type, labels.values()))
            if (known := self._known.get(key)) is not None:
                return known
            with self._lock:
                line = self._first_use(kind, name, text, buckets, labels)
            self._known[key] = line
        except Refusal as refusal:
            self._refuse(refusal)
            return None
        except (TypeError, AttributeError) as error:
            # No string for a name, a list for a label: typed callers do not come here.
            self._refuse(Refusal(Why.DECLARATION, str(name), f"is misused: {error}"))
            return None
        return line

    def _first_use(
        self, kind: Kind, name: str, text: str, buckets: Sequence[float], labels: Labels
    ) -> Line:
        bare = check_name(name, counter=kind is Counter)
        named = check_labels(name, labels)
        bounds = check_buckets(name, buckets) if kind is Histogram else ()
        declared = self._declared.get(bare)
        if declared is None:
            declared = self._declare(kind, bare, check_text(name, text), bounds, named)
        if declared.kind is not kind or declared.buckets != bounds:
            raise Refusal(Why.DECLARATION, name, "is known as another kind, or with other buckets")
        if declared.labels != tuple(label for label, _ in named):
            raise Refusal(
                Why.LABELS, name, f"is known with the labels {', '.join(declared.labels) or 'none'}"
            )
        return self._line_of(declared, name, tuple(value for _, value in named))

    def _declare(
        self,
        kind: Kind,
        name: str,
        text: str,
        bounds: tuple[float, ...],
        named: tuple[tuple[str, str], ...],
    ) -> _Declared:
        if len(self._declared) >= MAX_METRICS:
            raise Refusal(Why.TOO_MANY, name, f"is one too many: {MAX_METRICS} are kept")
        labels = tuple(label for label, _ in named)
        try:
            if kind is Histogram:
                family: Counter | Gauge | Histogram = Histogram(
                    name, text, labels, buckets=bounds, registry=self._registry
                )
            else:
                family = kind(name, text, labels, registry=self._registry)
        except ValueError as error:  # its lines would have the name of another's
            raise Refusal(Why.NAME, name, f"cannot be called so: {error}") from error
        declared = _Declared(kind, labels, bounds, family, {})
        self._declared[name] = declared
        return declared

    def _line_of(self, declared: _Declared, name: str, values: tuple[str, ...]) -> Line:
        if (line := declared.lines.get(values)) is not None:
            return line
        if len(declared.lines) >= MAX_LABEL_SETS:
            raise Refusal(
                Why.TOO_MANY,
                name,
                f"has {MAX_LABEL_SETS} sets of labels, and no more are kept: what has no bound, "
                "such as an id, belongs in the log",
            )
        child = declared.family.labels(*values) if values else declared.family
        line = declared.lines[values] = Line(child, name, self._refuse)
        return line

    def _refuse(self, refusal: Refusal) -> None:
        self._refused[refusal.why].inc()
        if self._strict:
            raise refusal
        about = (refusal.metric, refusal.why)
        with self._lock:  # handlers in threads are refused at the same time
            known = about in self._complained
            self._complained.add(about)
        if not known:  # every event repeats it, the log need not
            log.warning(
                "a handler's metric is refused",
                extra={"queue": self._queue, "problem": str(refusal)},
            )
