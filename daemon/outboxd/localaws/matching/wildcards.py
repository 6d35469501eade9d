"""The wildcard operator: `*` is any text, a backslash takes the meaning from what follows."""

import re
from collections.abc import Iterator

_MEANT = "*\\"


def expression(pattern: str) -> "re.Pattern[str]":
    """What matches the same texts. Raises ValueError for a pattern that AWS refuses."""
    if re.search(r"(?<!\\)(\\\\)*\*\*", pattern):
        raise ValueError("Consecutive wildcard characters")
    return re.compile("".join(_parts(pattern)), re.DOTALL)


def _parts(pattern: str) -> Iterator[str]:
    rest = iter(pattern)
    for character in rest:
        match character:
            case "*":
                yield ".*"
            case "\\":
                escaped = next(rest, "")
                if not escaped or escaped not in _MEANT:
                    raise ValueError("Invalid escape character")
                yield re.escape(escaped)
            case _:
                yield re.escape(character)
