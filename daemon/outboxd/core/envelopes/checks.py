"""What every kind of envelope has to be checked for."""

from datetime import datetime
from typing import TypeVar

import msgspec

from outboxd.core.envelopes.incoming import Malformed

T = TypeVar("T")


def decoded(kind: str, decoder: msgspec.json.Decoder[T], text: str | msgspec.Raw) -> T:
    """The text by that decoder. Raises Malformed, naming the kind, if a key is missing or wrong."""
    try:
        return decoder.decode(text)
    except msgspec.ValidationError as error:
        raise Malformed(f"not understood as {kind}: {error}") from error


def check_text(key: str, text: str) -> None:
    """Raises Malformed for a text that identifies nothing, or that PostgreSQL cannot store."""
    if not text or "\0" in text:
        raise Malformed(f"`{key}` is empty or holds a NUL character")


def check_zone(key: str, moment: datetime) -> None:
    """Raises Malformed for a time that may be any of two dozen moments."""
    if moment.tzinfo is None:
        raise Malformed(f"`{key}` has no time zone")
