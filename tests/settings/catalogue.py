"""Every table and every setting there is: types from the code, meanings from the reference."""

import inspect
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, get_args, get_origin

import msgspec
from msgspec.structs import FieldInfo, fields

from outboxd.core.expectations import expectation, unwrapped
from outboxd.core.settings import Section, Settings, hidden, secret
from tests.settings.reference import Comment, KeyPath, Reference

NAME = "<name>"
"""Stands in a path for the name of a table that users choose."""

_UNITS = {
    "_seconds": ", in seconds",
    "_days": ", in days",
    "_bytes": ", in bytes",
    "_per_second": " a second",
    "_per_minute": " a minute",
}


class Setting(msgspec.Struct, frozen=True):
    """One setting: what it may be, its default as TOML, and the comment that is about it."""

    path: KeyPath
    allowed: str
    default: str
    comment: Comment | None

    @property
    def name(self) -> str:
        return self.path[-1]


class Table(msgspec.Struct, frozen=True):
    """One table: what the code says that it is for, the comment above its header, its settings in
    the order of the reference. The header is empty for what stands above all tables."""

    header: str
    purpose: str
    comment: Comment | None
    settings: tuple[Setting, ...]


def catalogue(reference: Reference) -> tuple[Table, ...]:
    """All tables in the order of the types; `comment` is None for what the reference leaves out."""
    tables = {general(path): comment for path, comment in reversed(reference.tables.items())}
    settings = {general(path): comment for path, comment in reversed(reference.settings.items())}
    order = [general(path) for path in reference.settings]
    return tuple(_Walk(tables, settings, order).tables(Settings, (), ""))


def general(path: KeyPath, kind: type[Section] = Settings) -> KeyPath:
    """The path with NAME for each name that a user chose. Raises KeyError for an unknown one."""
    if not path:
        return ()
    key, *rest = path
    field = {field.name: field for field in fields(kind)}[key]
    match inner_section(field.type):
        case None:
            return (key, *rest)
        case inner if is_named(field.type) and rest:
            return (key, NAME, *general(tuple(rest[1:]), inner))
        case inner:
            return (key, *general(tuple(rest), inner))


def inner_section(annotation: Any) -> type[Section] | None:
    """The type of the table, or of each of the tables, that a field of this type holds."""
    bare, _ = unwrapped(annotation)
    for part in (bare, *get_args(bare)):
        if inspect.isclass(part) and issubclass(part, Section):
            return part
    return None


def is_named(annotation: Any) -> bool:
    """Whether a field of this type holds tables by names that users choose."""
    bare, _ = unwrapped(annotation)
    return get_origin(bare) is dict


class _Walk:
    """Goes through the types once; a type that was met before gets no second table."""

    def __init__(
        self,
        comments_of_tables: Mapping[KeyPath, Comment],
        comments_of_settings: Mapping[KeyPath, Comment],
        order: list[KeyPath],
    ) -> None:
        self._comments_of_tables = comments_of_tables
        self._comments_of_settings = comments_of_settings
        self._order = order
        self._headers: dict[type[Section], str] = {}

    def tables(self, kind: type[Section], path: KeyPath, header: str) -> Iterator[Table]:
        self._headers[kind] = header
        inner: list[FieldInfo] = []
        settings: list[Setting] = []
        for field in fields(kind):
            section = inner_section(field.type)
            if section is None or section in self._headers:
                settings.append(self._setting(field, path))
            else:
                inner.append(field)
        if settings:
            settings.sort(key=self._place)
            comment = self._comments_of_tables.get(path)
            purpose = _purpose(kind) if header else ""
            yield Table(header, purpose, comment, tuple(settings))
        for field in inner:
            yield from self._inner(field, path)

    def _inner(self, field: FieldInfo, path: KeyPath) -> Iterator[Table]:
        section = inner_section(field.type)
        assert section is not None
        bare, _ = unwrapped(field.type)
        below = (*path, field.name, NAME) if is_named(field.type) else (*path, field.name)
        brackets = ("[[", "]]") if get_origin(bare) is tuple else ("[", "]")
        yield from self.tables(section, below, ".".join(below).join(brackets))

    def _setting(self, field: FieldInfo, path: KeyPath) -> Setting:
        here = (*path, field.name)
        return Setting(
            here, self._allowed(field), _default(field), self._comments_of_settings.get(here)
        )

    def _place(self, setting: Setting) -> int:
        return self._order.index(setting.path) if setting.path in self._order else len(self._order)

    def _allowed(self, field: FieldInfo) -> str:
        if section := inner_section(field.type):
            return f"a table, as {self._headers[section]}"
        text = "".join([*_types(field.type), *_unit(field.name, expectation(field.type))])
        if secret(field.type):
            return f"{text}; secret, or `{field.name}_file`: the name of a file that holds it"
        return f"{text}; never shown" if hidden(field.type) else text


def _types(annotation: Any) -> Iterator[str]:
    bare, _ = unwrapped(annotation)
    match get_origin(bare), get_args(bare):
        case (builtin, (entry, *_)) if builtin is tuple:
            yield f"{expectation(annotation)}, each {expectation(entry)}"
        case (builtin, (_, value)) if builtin is dict:
            yield f"{expectation(annotation)}, each value {expectation(value)}"
        case _:
            yield expectation(annotation)


def _unit(name: str, told: str) -> Iterator[str]:
    for ending, unit in _UNITS.items():
        if name.endswith(ending) and unit.split()[-1] not in told.split():
            yield unit


def _default(field: FieldInfo) -> str:
    value = field.default
    if value is msgspec.NODEFAULT and field.default_factory is not msgspec.NODEFAULT:
        value = field.default_factory()
    if value is msgspec.NODEFAULT:
        return "required"
    return "not set" if value is None else f"`{json.dumps(value, ensure_ascii=False)}`"


def _purpose(kind: type[Section]) -> str:
    """The first sentence of its docstring."""
    first, *_ = (inspect.getdoc(kind) or "").split("\n\n")
    return re.split(r"(?<=\.)\s", " ".join(first.split()), maxsplit=1)[0]
