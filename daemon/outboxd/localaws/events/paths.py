"""The small part of JSONPath that EventBridge takes: names and positions."""

import re
from typing import Any

_STEP = re.compile(r"\.([^.\[\]*'\"]+)|\[(\d+)\]|\['([^']+)'\]|\[\"([^\"]+)\"\]")

Path = tuple[str | int, ...]

NOTHING: Any = object()


def parsed(text: str) -> Path | None:
    """None for what is no such path."""
    if not text.startswith("$"):
        return None
    steps: list[str | int] = []
    position = 1
    while position < len(text):
        step = _STEP.match(text, position)
        if step is None:
            return None
        steps.append(int(step[2]) if step[2] else step[1] or step[3] or step[4])
        position = step.end()
    return tuple(steps)


def found(path: Path, value: Any) -> Any:
    """What lies there, or NOTHING."""
    for step in path:
        match value:
            case dict() if isinstance(step, str) and step in value:
                value = value[step]
            case list() if isinstance(step, int) and step < len(value):
                value = value[step]
            case _:
                return NOTHING
    return value
