"""One line of a handler's metric: what may be done to it, whatever the handler believes it is."""

from collections.abc import Callable
from typing import TypeAlias

from prometheus_client import Counter, Gauge, Histogram

from outboxd.adapters.metrics.user_rules import Refusal, Why, check_number

Kind: TypeAlias = type[Counter] | type[Gauge] | type[Histogram]


class Line:
    """A counter's, a gauge's or a histogram's line; what does not suit its kind is refused.

    One class for the three: a mistaken call is to be told by a refusal, not by an AttributeError
    that fails the handler.
    """

    __slots__ = ("_child", "_name", "_refuse")

    def __init__(
        self, child: Counter | Gauge | Histogram, name: str, refuse: Callable[[Refusal], None]
    ) -> None:
        self._child = child
        self._name = name
        self._refuse = refuse

    def inc(self, amount: float = 1.0) -> None:
        try:
            match self._child:
                case Counter():
                    self._child.inc(check_number(self._name, amount, smallest=0.0))
                case Gauge():
                    self._child.inc(check_number(self._name, amount))
                case _:
                    raise self._unsuited("observe")
        except Refusal as refusal:
            self._refuse(refusal)

    def dec(self, amount: float = 1.0) -> None:
        self._on_gauge(lambda gauge: gauge.dec(check_number(self._name, amount)))

    def set(self, value: float) -> None:
        self._on_gauge(lambda gauge: gauge.set(check_number(self._name, value)))

    def observe(self, value: float) -> None:
        try:
            if not isinstance(self._child, Histogram):
                raise self._unsuited("inc")
            self._child.observe(check_number(self._name, value))
        except Refusal as refusal:
            self._refuse(refusal)

    def _on_gauge(self, act: Callable[[Gauge], None]) -> None:
        try:
            if not isinstance(self._child, Gauge):
                raise self._unsuited("inc" if isinstance(self._child, Counter) else "observe")
            act(self._child)
        except Refusal as refusal:
            self._refuse(refusal)

    def _unsuited(self, instead: str) -> Refusal:
        kind = type(self._child).__name__.lower()
        return Refusal(Why.DECLARATION, self._name, f"is a {kind}: call {instead}() of it")
