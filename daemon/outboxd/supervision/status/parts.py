"""Pieces of the page: a cell that knows which value of the document it shows, and a sparkline.

The script that refreshes the page finds cells by `data-k`, the value's path, and `data-f`, its
format; so what is shown where is said once, here, for both.
"""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from outboxd.core import figures

_UPS = {None: figures.UNKNOWN, True: "reached", False: "not reached"}

FORMATS: Mapping[str, Callable[[Any], str]] = {
    "text": lambda value: figures.UNKNOWN if value is None else str(value),
    "count": figures.count,
    "rate": figures.rate,
    "seconds": figures.seconds,
    "ago": figures.ago,
    "size": figures.size,
    "share": figures.share,
    "up": lambda value: _UPS[value],
}

_STYLED = frozenset({"text", "up"})
"""Forms whose value the styles look at."""

SPARK_WIDTH = 90
SPARK_HEIGHT = 24


def value_at(document: Any, path: str) -> Any:
    """The value at a dotted path, lists by their index."""
    for step in path.split("."):
        document = document[int(step)] if isinstance(document, (list, tuple)) else document[step]
    return document


def shown(document: Any, path: str, form: str, *, hot: float | None = None) -> str:
    """A value in its form, which the script keeps fresh; one of at least `hot` is marked."""
    value = value_at(document, path)
    text = FORMATS[form](value)
    marks = "" if hot is None else f' data-hot="{hot}"'
    if hot is not None and value is not None and value >= hot:
        marks += ' class="hot"'
    if form in _STYLED:
        marks += f' data-v="{escape(str(value))}"'
    return f'<span data-k="{path}" data-f="{form}"{marks}>{escape(text)}</span>'


def spark(document: Any, path: str, form: str, name: str) -> str:
    """The last 15 minutes as a line; its label says the range, for those who do not see it."""
    values = value_at(document, path)
    label = escape(f"{name}, {spark_range(values, form)}")
    return (
        f'<svg class="spark" data-spark="{path}" data-f="{form}" data-name="{escape(name)}" '
        f'role="img" aria-label="{label}" viewBox="0 0 {SPARK_WIDTH} {SPARK_HEIGHT}" '
        f'preserveAspectRatio="none"><path d="{spark_path(values)}"/></svg>'
    )


def spark_range(values: Sequence[float | None], form: str) -> str:
    """What the highest and the newest are."""
    known = [value for value in values if value is not None]
    if not known:
        return "nothing known yet"
    most, newest = FORMATS[form](max(known)), FORMATS[form](values[-1])
    return f"last 15 minutes: at most {most}, now {newest}"


def spark_path(values: Sequence[float | None]) -> str:
    """A path from 0 at the bottom to the largest value at the top, the newest at the right; a gap
    where nothing is known."""
    most = max((value for value in values if value is not None), default=0) or 1
    left = SPARK_WIDTH - len(values)
    steps: list[str] = []
    pen = "M"
    for place, value in enumerate(values):
        if value is None:
            pen = "M"
            continue
        height = SPARK_HEIGHT - 1.5 - value / most * (SPARK_HEIGHT - 3)
        steps.append(f"{pen}{left + place} {figures.fixed(height, 1)}h1")
        pen = "L"
    return "".join(steps)
