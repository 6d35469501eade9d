"""A handler that can be imported, and cannot be made."""

from typing import Any

from outboxd import Event


class Stubborn:
    """Its constructor fails, as one does whose service is not there."""

    def __init__(self, why: str = "no licence") -> None:
        raise RuntimeError(why)

    def __call__(self, event: Event[Any]) -> None:
        raise AssertionError("never made, never called")
