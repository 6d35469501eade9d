"""Settings and texts without what must not be shown."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote

import msgspec

from outboxd.core.settings import Section, Settings, hidden

MASK = "***"

SHORTEST_SECRET = 8
"""Shorter ones, such as a handler's option `country = "de"`, would black out half of every text."""

_USER_INFO = re.compile(r"(?<=://)[^/@]+(?=@)")
_PASSWORD = re.compile(r"\b(?:ssl)?password\s*=\s*('(?:[^'\\]|\\.)*'|\S+)")

# Never `\w*` around them: in a long text of such words each would be tried from each.
_WORDS = (
    r"password|passwd|passphrase|\bpwd|secret|token|authorization|credential|cookie|\bdsn"
    r"|(?:api|access|private|secret|signing|encryption)[_-]?key|webhook[_-]?url"
)
_NAME_OF_SECRET = re.compile(_WORDS, re.IGNORECASE)
_VALUE = r"""(?:'[^']*'|"[^"]*"|[^\s&,;}\])]+)"""
_LOOKS_SECRET = re.compile(
    rf"(?P<name>(?:{_WORDS}|x-amz-signature)\w{{0,40}}['\"]?\s{{0,5}}[=:]\s{{0,5}})"
    rf"(?:(?:bearer|basic)\s{{1,5}})?{_VALUE}"
    rf"|(?P<option>--[\w-]{{0,40}}(?:{_WORDS})[\w-]{{0,40}}\s{{1,5}}){_VALUE}"
    r"|(?P<scheme>\b(?:bearer|basic)\s{1,5})[\w.~+/=-]{8,}"
    # Greedy up to the last @: an unescaped one may be part of the password.
    r"|(?P<slashes>://)[^/\s]+(?=@)",
    re.IGNORECASE,
)

LONGEST_SECRET = 2048
"""What is cut out of a long text is cut that far from what is kept: no half of a secret stays."""


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


def secrets_of(section: Section) -> Iterator[str]:
    """Every hidden text of a table and of those below it.

    Of a handler's options only those whose names say that they are secret: all of them are hidden
    where settings are shown, but a log without its hosts and addresses could not be read.
    """
    for field in msgspec.structs.fields(section):
        yield from _hidden_in(getattr(section, field.name), hide=hidden(field.type))


def secrets_in_environment(environ: Mapping[str, str]) -> Iterator[str]:
    """The values of variables that are called a secret, such as AWS_SECRET_ACCESS_KEY."""
    for name, value in environ.items():
        # A path is no secret, and an error about that file has to name it.
        if names_a_secret(name) and not name.endswith(("_FILE", "_PATH")):
            yield from _hidden_in(value, hide=True)


def names_a_secret(name: str) -> bool:
    """Whether what goes by this name is better not shown."""
    return _NAME_OF_SECRET.search(name) is not None


def redactor(secrets: Iterable[str]) -> Callable[[str], str]:
    """Takes these secrets out of any text, in every spelling, and what looks like a secret."""
    spellings = {spelling for secret in secrets for spelling in _secrets_of(secret)}
    # The longest first: a connection string before the password in it.
    known = re.compile("|".join(map(_pattern, sorted(spellings, key=len, reverse=True))))

    def redact(text: str) -> str:
        if spellings:
            text = known.sub(MASK, text)
        return _LOOKS_SECRET.sub(_mask, text)

    return redact


def redacted_within(text: str, longest: int, redact: Callable[[str], str]) -> str:
    """The text without secrets and, if it is longer than `longest`, without its middle.

    It is cut before it is searched: the time that takes is bounded by `longest`, whoever has
    written the text, and while it is searched nothing else runs in this process.
    """
    if len(text) <= longest + 2 * LONGEST_SECRET:
        return _without_middle(redact(text), longest)
    kept = longest // 2 + LONGEST_SECRET
    head = redact(text[:kept])[:-LONGEST_SECRET]
    tail = redact(text[-kept:])[LONGEST_SECRET:]
    return f"{head} … {len(text) - 2 * (longest // 2)} characters left out … {tail}"


def _without_middle(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]} … {len(text) - 2 * half} characters left out … {text[-half:]}"


def _pattern(secret: str) -> str:
    """A short one counts as a whole word only: the password "app" is in half of all texts."""
    pattern = re.escape(secret)
    return pattern if len(secret) >= SHORTEST_SECRET else rf"(?<!\w){pattern}(?!\w)"


def _mask(found: re.Match[str]) -> str:
    kept = found["name"] or found["option"] or found["scheme"] or found["slashes"]
    return f"{kept}{MASK}"


def _hidden_in(value: object, *, hide: bool) -> Iterator[str]:
    match value:
        case str() if hide and len(value) >= SHORTEST_SECRET:
            yield value
        case Section():
            yield from secrets_of(value)
        case dict():
            for name, each in value.items():
                yield from _hidden_in(each, hide=hide and names_a_secret(name))
        case tuple():
            for each in value:
                yield from _hidden_in(each, hide=hide)
        case _:
            pass


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
