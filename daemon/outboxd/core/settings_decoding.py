"""From the tables of a TOML file to `Settings`, with every problem told, each in the file's terms.

msgspec stops at its first error, and its paths leave out the keys of tables. So the tables are
walked here along the types, and msgspec converts one value at a time.
"""

import inspect
import math
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, TypeVar, get_args, get_origin

import msgspec
from msgspec.structs import FieldInfo, fields

from outboxd.core.errors import SettingsError
from outboxd.core.expectations import expectation, finding, suggestion, unwrapped
from outboxd.core.places import Place
from outboxd.core.references import expand
from outboxd.core.settings import Section, Settings, hidden, secret

ReadSecret = Callable[[str], str]
"""Reads the file of a secret by the path in the configuration. Raises SettingsError."""

S = TypeVar("S", bound=Section)


class _Nothing(Enum):
    """Why there is no value."""

    ABSENT = "absent"
    FAILED = "failed"


def decode_settings(
    tables: Mapping[str, Any], environ: Mapping[str, str], read_secret: ReadSecret
) -> Settings:
    """The settings of a parsed file, its references and secrets resolved.

    Raises SettingsError with all problems of single settings; rules between settings are not looked
    at here, since they would say odd things about settings that are not understood.
    """
    decoder = _Decoder(environ, read_secret)
    settings = decoder.section(Settings, tables, Place())
    if isinstance(settings, _Nothing) or decoder.problems:
        raise SettingsError(decoder.problems)
    return settings


class _Decoder:
    """Walks tables along the types and collects problems."""

    def __init__(self, environ: Mapping[str, str], read_secret: ReadSecret) -> None:
        self.problems: list[str] = []
        self._environ = environ
        self._read_secret = read_secret

    def section(self, kind: type[S], table: object, place: Place) -> S | _Nothing:
        """One table as one Section."""
        if not isinstance(table, Mapping):
            return self._failed(place, f"expected a table, found {finding(table, hide=False)}")
        known = {field.name: field for field in fields(kind)}
        self._refuse_unknown(table, known, place)
        values = {name: self._field(field, table, place) for name, field in known.items()}
        if _Nothing.FAILED in values.values():
            return _Nothing.FAILED
        return kind(**{name: v for name, v in values.items() if v is not _Nothing.ABSENT})

    def _refuse_unknown(
        self, table: Mapping[str, object], known: Mapping[str, FieldInfo], place: Place
    ) -> None:
        files = [_file_key(field) for field in known.values() if secret(field.type)]
        names = [*known, *files]
        for key in table:
            if key not in names:
                self._failed(place.at(key), f"unknown key{suggestion(key, names)}")

    def _field(self, field: FieldInfo, table: Mapping[str, object], place: Place) -> Any:
        value: Any = _Nothing.ABSENT
        if secret(field.type) and _file_key(field) in table:
            value = self._secret_file(field, table, place)
        elif field.name in table:
            value = self._value(field.type, table[field.name], place, field.name)
        if value is _Nothing.ABSENT and field.required:
            offer = f" (or {_file_key(field)})" if secret(field.type) else ""
            return self._failed(
                place.at(field.name), f"missing{offer}; expected {expectation(field.type)}"
            )
        return value

    def _secret_file(self, field: FieldInfo, table: Mapping[str, object], place: Place) -> Any:
        file_key = _file_key(field)
        here = place.at(file_key)
        if field.name in table:
            return self._failed(here, f"{field.name} is given too; keep one of them")
        path = self._scalar(str, table[file_key], here)
        if path is _Nothing.ABSENT:
            return self._failed(here, "names no file: its reference is empty")
        if path is _Nothing.FAILED:
            return path
        try:
            return self._read_secret(path)
        except SettingsError as error:
            return self._failed(here, *error.problems)

    def _value(self, annotation: Any, raw: object, place: Place, key: str) -> Any:
        bare, _ = unwrapped(annotation)
        match get_origin(bare), get_args(bare):
            case None, _ if inspect.isclass(bare) and issubclass(bare, Section):
                return self.section(bare, raw, place.subtable(key))
            case (builtin, (entry, *_)) if builtin is tuple:
                return self._array(annotation, entry, raw, place, key)
            case (builtin, (name, entry)) if builtin is dict:
                return self._mapping(name, annotation, entry, raw, place, key)
            case _:
                return self._scalar(annotation, raw, place.at(key))

    def _array(self, annotation: Any, entry: Any, raw: object, place: Place, key: str) -> Any:
        if not isinstance(raw, list):
            return self._unexpected(annotation, raw, place.at(key))
        if _is_section(entry):
            array = place.subtable(key)
            values = [
                self.section(entry, table, array.element(number, _name_of(table)))
                for number, table in enumerate(raw, start=1)
            ]
        else:
            values = [
                self._scalar(entry, item, place.at(key).item(number), empty_is_absent=False)
                for number, item in enumerate(raw, start=1)
            ]
        if _Nothing.FAILED in values:
            return _Nothing.FAILED
        return self._converted(annotation, tuple(values), raw, place.at(key))

    def _mapping(
        self, name: Any, annotation: Any, entry: Any, raw: object, place: Place, key: str
    ) -> Any:
        if not isinstance(raw, Mapping):
            return self._unexpected(annotation, raw, place.at(key))
        values: dict[str, Any] = {}
        for each, value in raw.items():
            if _is_section(entry):
                here = place.subtable(key).subtable(each)
                values[each] = self.section(entry, value, here)
            else:
                here = place.at(key).at(each)
                hide = hidden(annotation)
                values[each] = self._scalar(entry, value, here, hide=hide, empty_is_absent=False)
            if self._converted(name, each, each, here) is _Nothing.FAILED:
                values[each] = _Nothing.FAILED
        return _Nothing.FAILED if _Nothing.FAILED in values.values() else values

    def _scalar(
        self,
        annotation: Any,
        raw: object,
        place: Place,
        *,
        hide: bool = False,
        empty_is_absent: bool = True,
    ) -> Any:
        """One value. A reference that comes out empty leaves a setting at its default, so that
        `"${NAME:-}"` offers a setting to the environment without forcing one on it."""
        hide = hide or hidden(annotation)
        if not isinstance(raw, str):
            return self._converted(annotation, raw, raw, place, hide=hide)
        text, referenced, problems = expand(raw, self._environ)
        if problems:
            return self._failed(place, *problems)
        if "\0" in text:
            return self._failed(place, "contains a NUL character, which nothing here may hold")
        if not _is_unicode(text):
            return self._failed(place, "holds bytes of an environment variable that are not UTF-8")
        if referenced and empty_is_absent and text == "":
            return _Nothing.ABSENT
        return self._converted(annotation, text, text, place, hide=hide, lax=referenced)

    def _converted(
        self,
        annotation: Any,
        value: object,
        raw: object,
        place: Place,
        *,
        hide: bool = False,
        lax: bool = False,
    ) -> Any:
        """The value as its type. Lax is for references: the environment knows text only, so the
        text of `port = "${PORT:-9464}"` has to become a number; a number in quotes is a mistake."""
        try:
            converted = msgspec.convert(value, annotation, strict=not lax)
        except msgspec.ValidationError:
            return self._unexpected(annotation, raw, place, hide=hide)
        if not _fits_a_frame(converted):
            return self._unexpected(annotation, raw, place, hide=hide)
        return converted

    def _unexpected(
        self, annotation: Any, raw: object, place: Place, *, hide: bool = False
    ) -> _Nothing:
        found = finding(raw, hide=hide or hidden(annotation))
        return self._failed(place, f"expected {expectation(annotation)}, found {found}")

    def _failed(self, place: Place, *problems: str) -> _Nothing:
        self.problems.extend(f"{place}: {problem}" for problem in problems)
        return _Nothing.FAILED


def _fits_a_frame(value: object) -> bool:
    """Whether the value is finite and, as an integer, of the 64 bits that msgpack knows."""
    match value:
        case float():
            return math.isfinite(value)
        case int():
            return -(1 << 63) <= value < 1 << 63
        case _:
            return True


def _is_unicode(text: str) -> bool:
    """Python keeps such bytes as lone surrogates (PEP 383), which no encoder takes."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _file_key(field: FieldInfo) -> str:
    return f"{field.name}_file"


def _is_section(annotation: Any) -> bool:
    return inspect.isclass(annotation) and issubclass(annotation, Section)


def _name_of(table: object) -> str | None:
    """The `name` of an array's entry, for people to find it by."""
    name = table.get("name") if isinstance(table, Mapping) else None
    return name if isinstance(name, str) and len(name) <= 200 and name.isprintable() else None
