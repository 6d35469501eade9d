"""The trace that an event belongs to: one line of W3C Trace Context, or nothing."""

import re

_TRACEPARENT = re.compile(
    "(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
)
"""W3C Trace Context, 3.2.2: version ff and ids of nothing but zeros are invalid."""

_X_RAY_ROOT = re.compile("1-([0-9a-f]{8})-([0-9a-f]{24})")
"""Version, start time and the rest of the id (X-Ray developer guide, "tracing header"); without the
dashes it is the trace id of W3C Trace Context."""

_FLAGS = {"1": "01", "0": "00", "?": "00", "": "00"}
"""By `Sampled`: only a decision that has been made sets the flag; "?" and nothing leave it open."""


def first_traceparent(*candidates: object) -> str | None:
    """The first valid one. Anything else is passed over: no event should die of its trace."""
    for candidate in candidates:
        if isinstance(candidate, str) and _TRACEPARENT.fullmatch(candidate):
            return candidate
    return None


def traceparent_of_x_ray(header: str | None) -> str | None:
    """An AWSTraceHeader such as `Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;
    Sampled=1` as a traceparent. None for anything malformed, and for a trace without a parent: W3C
    has no form for one.
    """
    fields = _fields(header or "")
    root = _X_RAY_ROOT.fullmatch(fields.get("Root", ""))
    flags = _FLAGS.get(fields.get("Sampled", ""))
    if root is None or flags is None:
        return None
    return first_traceparent(f"00-{root[1]}{root[2]}-{fields.get('Parent', '')}-{flags}")


def _fields(header: str) -> dict[str, str]:
    """By name, in whatever order they come; none when one comes twice, since which is right?"""
    pairs = [field.strip().partition("=") for field in header.split(";")]
    fields = {name: value for name, _, value in pairs}
    return fields if len(fields) == len(pairs) else {}
