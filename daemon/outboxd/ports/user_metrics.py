"""Metrics of a handler's own: what `context.metrics` promises."""

from collections.abc import Sequence
from typing import Protocol


class UserCounter(Protocol):
    """One line that only grows."""

    def inc(self, amount: float = 1.0) -> None:
        """Add to it."""


class UserGauge(Protocol):
    """One line that goes up and down."""

    def set(self, value: float) -> None:
        """Replace its value."""

    def inc(self, amount: float = 1.0) -> None:
        """Add to it."""

    def dec(self, amount: float = 1.0) -> None:
        """Take from it."""


class UserHistogram(Protocol):
    """One distribution."""

    def observe(self, value: float) -> None:
        """Count one value."""


class UserMetrics(Protocol):
    """Metrics that appear in /metrics under the name that the handler gives them.

    A metric is declared by its first use; labels are keywords, the same ones in every use of a
    name. What cannot be counted is left out, logged once and counted as refused, and the handler
    goes on: a metric never decides about an event. Thread-safe, and cheap enough for every call.
    """

    def counter(self, name: str, text: str = "", /, **labels: str | int) -> UserCounter:
        """The counter of this name (without `_total`) with these labels; `text` is its help."""

    def gauge(self, name: str, text: str = "", /, **labels: str | int) -> UserGauge:
        """The gauge of this name; what /metrics shows is the sum over living processes."""

    def histogram(
        self, name: str, text: str = "", /, *, buckets: Sequence[float] = (), **labels: str | int
    ) -> UserHistogram:
        """The histogram of this name; `buckets` are upper bounds, by default those of durations in
        seconds from 5 ms to 10 s."""


class _Nowhere:
    """Takes everything and keeps nothing."""

    def counter(self, name: str, text: str = "", /, **labels: str | int) -> UserCounter:
        return self

    def gauge(self, name: str, text: str = "", /, **labels: str | int) -> UserGauge:
        return self

    def histogram(
        self, name: str, text: str = "", /, *, buckets: Sequence[float] = (), **labels: str | int
    ) -> UserHistogram:
        return self

    def inc(self, amount: float = 1.0) -> None:
        return

    def dec(self, amount: float = 1.0) -> None:
        return

    def set(self, value: float) -> None:
        return

    def observe(self, value: float) -> None:
        return


NOWHERE = _Nowhere()
"""For calls outside of a pool, and for what was refused."""
