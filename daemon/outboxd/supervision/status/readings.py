"""The exposition at one moment, and what grew between two of them: pure questions."""

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Protocol

from outboxd.supervision.series import Labels


class Line(Protocol):
    """One sample of an exposition."""

    @property
    def name(self) -> str: ...
    @property
    def labels(self) -> Mapping[str, str]: ...
    @property
    def value(self) -> float: ...


class Readings:
    """Samples of some names. A name or a label set that is not there is None, never 0.

    They lie by their queue or child, so that a question about one of many costs what it has.
    """

    def __init__(self, lines: Iterable[Line] = (), names: Container[str] = ()) -> None:
        self._scopes: dict[str, dict[str, dict[Labels, float]]] = {}
        for line in lines:
            if line.name not in names:
                continue
            scopes = self._scopes.setdefault(line.name, {})
            labels = tuple(sorted(line.labels.items()))
            scopes.setdefault(_scope(line.labels), {})[labels] = line.value

    def items(self, name: str, **where: str) -> Iterator[tuple[Labels, float]]:
        """The samples of that name which have these labels."""
        scopes = self._scopes.get(name, {})
        scope = _scope(where)
        wanted = where.items()
        for samples in [scopes.get(scope, {})] if scope else list(scopes.values()):
            for labels, value in samples.items():
                if wanted <= dict(labels).items():
                    yield labels, value

    def sum(self, name: str, **where: str) -> float | None:
        """All that have these labels, together."""
        values = [value for _, value in self.items(name, **where)]
        return sum(values) if values else None

    def buckets(self, name: str, **where: str) -> dict[float, float] | None:
        """A histogram's cumulative counts by upper bound, of all that have these labels."""
        found: dict[float, float] = {}
        for labels, value in self.items(f"{name}_bucket", **where):
            bound = float(dict(labels)["le"])
            found[bound] = found.get(bound, 0.0) + value
        return found or None

    def value(self, name: str, labels: Labels) -> float | None:
        """The one sample with exactly these labels."""
        return self._scopes.get(name, {}).get(_scope(dict(labels)), {}).get(labels)


def _scope(labels: Mapping[str, str]) -> str:
    return labels.get("queue") or labels.get("child") or ""


def growth(now: float | None, before: float | None) -> float | None:
    """How far a counter came; one that was not there began at 0, with the supervisor."""
    return None if now is None else max(0.0, now - (before or 0.0))


def buckets_growth(
    now: Mapping[float, float] | None, before: Mapping[float, float] | None
) -> dict[float, float] | None:
    """The observations between two looks at a histogram."""
    if now is None:
        return None
    before = before or {}
    if before.keys() - now.keys():  # cut otherwise by new code: it began anew
        before = {}
    return {bound: max(0.0, count - before.get(bound, 0.0)) for bound, count in now.items()}


def quantile(share: float, buckets: Mapping[float, float] | None) -> float | None:
    """As Prometheus' histogram_quantile: linear within a bucket, and the largest finite bound for
    what lies beyond it. None when nothing was observed."""
    if not buckets:
        return None
    ordered = sorted(buckets.items())
    observed = ordered[-1][1]
    if observed <= 0:
        return None
    rank = share * observed
    lower, below = 0.0, 0.0
    for bound, count in ordered:
        if count >= rank:
            if bound == float("inf"):
                return lower
            within = (rank - below) / (count - below) if count > below else 1.0
            return lower + (bound - lower) * within
        lower, below = bound, count
    return lower


def whole(value: float | None) -> int | None:
    """A count."""
    return None if value is None else round(value)


def age(at: float | None, now: float) -> float | None:
    """Seconds since a Unix time; 0 stands for never."""
    return max(0.0, now - at) if at else None
