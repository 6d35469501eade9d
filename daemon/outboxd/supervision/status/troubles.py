"""The last errors: a bounded list in which what repeats is one line with a count."""

from collections import OrderedDict
from typing import Literal

from msgspec import Struct

from outboxd.supervision.status.model import Trouble

KEPT = 30
LONGEST_TEXT = 300

Weight = Literal["warning", "error"]


class _Entry(Struct):
    at: float
    level: Weight
    count: int
    look: str


class Troubles:
    """The newest `kept` different ones; `at` is Unix time."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._entries: OrderedDict[tuple[str, str], _Entry] = OrderedDict()

    def add(
        self, at: float, level: Weight, source: str, text: str, *, count: int = 1, look: str = ""
    ) -> None:
        """One more of a kind; the same text from the same source is the same."""
        key = (source, shortened(text))
        entry = self._entries.pop(key, None)
        seen = entry.count if entry is not None else 0
        self._entries[key] = _Entry(at, level, seen + count, look)
        while len(self._entries) > self._kept:
            self._entries.popitem(last=False)

    def newest(self, now: float) -> tuple[Trouble, ...]:
        """The newest first."""
        return tuple(
            Trouble(
                at=entry.at,
                seconds_ago=max(0.0, now - entry.at),
                level=entry.level,
                source=source,
                text=text,
                count=entry.count,
                look=entry.look,
            )
            for (source, text), entry in reversed(self._entries.items())
        )


def shortened(text: str, longest: int = LONGEST_TEXT) -> str:
    """One line of bounded length that moves no cursor, whoever it is from."""
    line = "".join(each if each.isprintable() else "?" for each in " ".join(text.split()))
    return line if len(line) <= longest else f"{line[: longest - 1]}…"
