"""Settings and texts without what must not be shown."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, unquote

import msgspec

from outboxd.core.settings import Section, Settings, hidden

MASK = "***"

_USER_INFO = re.compile(r"(?<=://)[^/@]+(?=@)")
_PASSWORD = re.compile(r"\b(?:ssl)?password\s*=\s*('(?:[^'\\]|\\.)*'|\S+)")


def redacted(settings: Settings) -> dict[str, Any]:
    """The effective settings for people to read, the defaults among them."""
    return _section(settings)


def without_secrets(text: str, conninfo: str) -> str:
    """A text, such as an error of libpq, without the connection string and its passwords.

    libpq quotes what it cannot parse, and that may be all of a connection URI.
    """
    for secret in sorted(_secrets_of(conninfo), key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


def _section(section: Section) -> dict[str, Any]:
    return {
        field.name: _shown(field.type, getattr(section, field.name))
        for field in msgspec.structs.fields(section)
    }


def _shown(annotation: Any, value: Any) -> Any:
    match value:
        case None:
            return None
        case dict() if hidden(annotation):
            return dict.fromkeys(value, MASK)
        case _ if hidden(annotation):
            return MASK
        case Section():
            return _section(value)
        case dict():
            return {key: _shown(None, each) for key, each in value.items()}
        case tuple():
            return [_shown(None, each) for each in value]
        case str():
            return _USER_INFO.sub(MASK, value)
        case _:
            return value


def _secrets_of(conninfo: str) -> Iterator[str]:
    yield conninfo
    scheme, separator, rest = conninfo.partition("://")
    if not separator:
        for match in _PASSWORD.finditer(conninfo):
            yield from _spellings(match[1])
        return
    yield f"{scheme}{rest}"
    # The last @: an unescaped one in the password is the usual reason for libpq's complaint.
    user_info, separator, _ = rest.rpartition("@")
    if separator:
        yield from _spellings(user_info.partition(":")[2])
    for key, value in parse_qsl(rest.partition("?")[2]):
        if key in ("password", "sslpassword"):
            yield from _spellings(value)


def _spellings(password: str) -> Iterator[str]:
    bare = password.strip("'")
    for spelling in {password, bare, unquote(bare)}:
        if spelling:
            yield spelling
