"""What config/outboxd.toml says about each table and each setting, in its own words.

tomllib keeps no comments, so this reads the few shapes of lines that our file has: a header, a
setting, a setting that is switched off (`#port = 9464`), and text (`# Without …`). A comment is
about what follows it without a blank line between: a table, or one or several settings. What the
values are is left to tomllib.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from outboxd.resources import project_directory

PATH: Path = project_directory() / "config" / "outboxd.toml"

_HEADER = re.compile(r"\[\[?(?P<table>[^\[\]]+)\]\]?")
_SETTING = re.compile(r"#?(?P<key>[a-z][a-z_.]*) = \S.*")
_TEXT = re.compile(r"#(?: (?P<text>.*))?")

KeyPath = tuple[str, ...]
"""Of a table or a setting: the keys that lead to it, e.g. ("http", "port")."""


class Comment(msgspec.Struct, frozen=True):
    """A comment's lines and the first of the settings or the table that it is about."""

    lines: tuple[str, ...]
    first: KeyPath


class Reference(msgspec.Struct, frozen=True):
    """Comments by the paths of what they are about, in the order of the file."""

    tables: dict[KeyPath, Comment]
    settings: dict[KeyPath, Comment]


class UnknownLine(Exception):
    """A line of none of the shapes that are understood here: mend it, or teach this module."""


def reference(text: str) -> Reference:
    """The comments of a file of this shape. Raises UnknownLine."""
    found = Reference({}, {})
    table: KeyPath = ()
    lines: list[str] = []
    comment: Comment | None = None
    for line in text.splitlines():
        if match := _HEADER.fullmatch(line):
            table = _keys(match["table"])
            found.tables.setdefault(table, Comment(tuple(lines), table))
            lines, comment = [], None
        elif match := _SETTING.fullmatch(line):
            path = (*table, *match["key"].split("."))
            if lines or comment is None:
                comment = Comment(tuple(lines), path)
            found.settings.setdefault(path, comment)
            lines = []
        elif line == "":
            lines, comment = [], None
        elif match := _TEXT.fullmatch(line):
            lines.append(match["text"] or "")
        else:
            raise UnknownLine(line)
    return found


def uncommented(text: str) -> str:
    """The file with every setting switched on."""
    return "\n".join(_switched_on(line) for line in text.splitlines())


def values(text: str) -> dict[str, Any]:
    """What is written for each setting, those included that are switched off."""
    return tomllib.loads(uncommented(text))


def _switched_on(line: str) -> str:
    return line.removeprefix("#") if _SETTING.fullmatch(line) else line


def _keys(header: str) -> KeyPath:
    """The header's parts; tomllib knows about quotes."""
    return tuple(_nested(tomllib.loads(f"[{header}]")))


def _nested(table: dict[str, Any]) -> Iterator[str]:
    for key, inner in table.items():
        yield key
        yield from _nested(inner)
