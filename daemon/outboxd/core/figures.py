"""How numbers are shown to people, the same on the status page and in a terminal.

`supervision/status/page.js` says the same once more for a browser; a test compares the two.
"""

UNKNOWN = "–"
"""What is not known is never shown as 0."""

_SIZES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def count(value: float | None) -> str:
    """A number of things, its thousands apart: "12,345"."""
    return UNKNOWN if value is None else f"{round(value):,}"


def rate(value: float | None) -> str:
    """A number of things in a second: "0", "0.05/s", "8.3/s", "140/s"."""
    if value is None:
        return UNKNOWN
    if value <= 0:
        return "0/s"
    if value < 0.01:
        return "<0.01/s"
    if value < 1:
        return f"{value:.2f}/s"
    return f"{value:.1f}/s" if value < 100 else f"{round(value):,}/s"


def seconds(value: float | None) -> str:
    """A duration in its largest unit, with the next: "340 ms", "2.1 s", "3 min 20 s", "13 d 2 h"."""
    if value is None:
        return UNKNOWN
    if value < 0.9995:
        return f"{max(0, round(value * 1000))} ms"
    if value < 9.95:
        return f"{value:.1f} s"
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    for size, unit, part, smaller in (
        (86_400, "d", 3_600, "h"),
        (3_600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if whole >= size:
            more = whole % size // part
            return f"{whole // size} {unit}" + (f" {more} {smaller}" if more else "")
    raise AssertionError(value)


def ago(value: float | None) -> str:
    """An age, to the second: what is younger than one, or in the future, is "just now"."""
    if value is None:
        return UNKNOWN
    return "just now" if value < 1 else f"{seconds(float(int(value)))} ago".replace(".0 s", " s")


def size(value: float | None) -> str:
    """A number of bytes: "48 MiB", "1.2 GiB"."""
    if value is None:
        return UNKNOWN
    for unit, name in _SIZES:
        if value >= unit:
            shown = value / unit
            return f"{shown:.1f} {name}" if shown < 9.95 else f"{round(shown)} {name}"
    return f"{round(value)} B"
