"""Texts without what must not be shown: the settings' secrets, and what looks like one."""

import re
from collections.abc import Callable, Iterable, Iterator

import msgspec

from outboxd.core.redaction import MASK, without_secrets
from outboxd.core.settings import Section, Settings, hidden

_USER_INFO = re.compile(r"(?<=://)[^/\s]+(?=@)")
_PASSWORD = re.compile(r"(?i)\b(\w*(?:password|secret|token)\w*\s*[=:]\s*)('[^']*'|\"[^\"]*\"|\S+)")


SHORTEST_SECRET = 8
"""Shorter ones, such as a handler's option `country = "de"`, would black out half of every text."""


def redactor(settings: Callable[[], Iterable[Settings]]) -> Callable[[str], str]:
    """Takes out of any text what the settings of that moment hide."""

    def redact(text: str) -> str:
        hidden_ones = {secret for each in settings() for secret in secrets(each)}
        for secret in sorted(hidden_ones, key=len, reverse=True):
            text = without_secrets(text, secret)
        text = _USER_INFO.sub(MASK, text)
        return _PASSWORD.sub(rf"\1{MASK}", text)

    return redact


def secrets(section: Section) -> Iterator[str]:
    """Every hidden text of a table and of those below it."""
    for field in msgspec.structs.fields(section):
        yield from _of(getattr(section, field.name), hide=hidden(field.type))


def _of(value: object, *, hide: bool) -> Iterator[str]:
    match value:
        case str() if hide and len(value) >= SHORTEST_SECRET:
            yield value
        case Section():
            yield from secrets(value)
        case dict():
            for each in value.values():
                yield from _of(each, hide=hide)
        case tuple():
            for each in value:
                yield from _of(each, hide=hide)
        case _:
            pass
