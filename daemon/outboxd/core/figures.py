"""How numbers are shown to people, the same on the status page and in a terminal.

`supervision/status/page.js` says the same once more for a browser; a test compares the two.
"""

from math import floor

UNKNOWN = "\N{EN DASH}"
"""What is not known is never shown as 0."""

_UNITS = ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s"))
_SIZES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def count(value: float | None) -> str:
    """A number of things, its thousands apart: "12,345"."""
    return UNKNOWN if value is None else f"{_whole(value):,}"


def rate(value: float | None) -> str:
    """A number of things in a second: "0", "0.05/s", "8.3/s", "140/s"."""
    if value is None:
        return UNKNOWN
    if value <= 0:
        return "0/s"
    if value < 0.01:
        return "<0.01/s"
    if value < 1:
        return f"{fixed(value, 2)}/s"
    return f"{fixed(value, 1)}/s" if value < 100 else f"{_whole(value):,}/s"


def seconds(value: float | None) -> str:
    """A duration in its largest unit, with the next: "340 ms", "2.1 s", "3 min 20 s", "13 d"."""
    if value is None:
        return UNKNOWN
    if value < 0.9995:
        return f"{max(0, _whole(value * 1000))} ms"
    return f"{fixed(value, 1)} s" if value < 9.95 else _whole_seconds(_whole(value))


def ago(value: float | None) -> str:
    """An age: what is younger than a second, or in the future, is "just now"."""
    if value is None:
        return UNKNOWN
    return "just now" if value < 1 else f"{_whole_seconds(int(value))} ago"


def _whole_seconds(value: int) -> str:
    for length, unit, part, smaller in _UNITS:
        if value >= length:
            more = value % length // part
            return f"{value // length} {unit}" + (f" {more} {smaller}" if more else "")
    return f"{value} s"


def size(value: float | None) -> str:
    """A number of bytes: "48 MiB", "1.2 GiB"."""
    if value is None:
        return UNKNOWN
    for unit, name in _SIZES:
        if value >= unit:
            shown = value / unit
            return f"{fixed(shown, 1)} {name}" if shown < 9.95 else f"{_whole(shown)} {name}"
    return f"{_whole(value)} B"


def share(value: float | None) -> str:
    """A part of a whole, from 0 to 1: "0 %", "<1 %", "12 %"."""
    if value is None:
        return UNKNOWN
    return "<1 %" if 0 < value < 0.005 else f"{_whole(value * 100)} %"


def fixed(value: float, digits: int) -> str:
    """With so many digits, halves up as browsers do it, and not to the even one."""
    scale = 10**digits
    return f"{_whole(value * scale) / scale:.{digits}f}"


def _whole(value: float) -> int:
    return floor(value + 0.5)
