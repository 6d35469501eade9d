"""The trace that an event belongs to: one line of W3C Trace Context, or nothing."""

import re

_TRACEPARENT = re.compile(
    "(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
)
"""W3C Trace Context, 3.2.2: version ff and ids of nothing but zeros are invalid."""


def first_traceparent(*candidates: object) -> str | None:
    """The first valid one. Anything else is passed over: no event should die of its trace."""
    for candidate in candidates:
        if isinstance(candidate, str) and _TRACEPARENT.fullmatch(candidate):
            return candidate
    return None
