"""A handler that a check can import without leaving anything behind."""

from typing import Any

from outboxd import Event


def on_event(event: Event[dict[str, Any]]) -> None:
    """Does nothing."""
