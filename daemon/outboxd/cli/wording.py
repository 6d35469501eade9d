"""How commands put what they found into words: counts, durations, times, and one safe line."""

from datetime import UTC, datetime
from itertools import pairwise

LONGEST_ERROR = 200

_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def counted(number: int, noun: str, *, cap: int | None = None) -> str:
    """Such as "1 event", "no events"; one that has reached the cap is "more than" one less."""
    if cap is not None and number >= cap:
        return f"more than {cap - 1} {noun}s"
    return f"1 {noun}" if number == 1 else f"{number or 'no'} {noun}s"


def numbered(number: int, noun: str) -> str:
    """The same with a numeral for none, where numbers stand side by side: "0 errors"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def lasting(seconds: float) -> str:
    """The largest unit, and the next one if there is any of it: "13 d 22 h", "3 h"."""
    if abs(seconds) == float("inf"):
        return "for ever"
    rest = max(0, round(seconds))
    for (unit, length), (smaller, part) in pairwise(_UNITS):
        if rest >= length:
            more = rest % length // part
            return f"{rest // length} {unit}" + (f" {more} {smaller}" if more else "")
    return f"{rest} s"


def ago(seconds: float) -> str:
    """An age; what is in the future, by clocks that differ, is just now."""
    return "just now" if seconds < 1 else f"{lasting(seconds)} ago"


def at(unix_seconds: float) -> str:
    """A moment in UTC, to the second; readable also where the calendar ends."""
    try:
        return datetime.fromtimestamp(unix_seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return "never" if unix_seconds > 0 else "always"


def iso(unix_seconds: float | None) -> str | None:
    """The same for programs, with its fraction; None for what has no place in a calendar."""
    if unix_seconds is None:
        return None
    try:
        moment = datetime.fromtimestamp(unix_seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def line(text: str) -> str:
    """One line that moves no cursor: what a row holds may come from anybody."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))


def shortened(text: str) -> str:
    """The beginning of an error."""
    whole = line(text)
    return whole if len(whole) <= LONGEST_ERROR else f"{whole[: LONGEST_ERROR - 3]}..."
