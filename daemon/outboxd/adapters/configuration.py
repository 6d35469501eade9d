"""Reads the configuration file: TOML, then references, secrets, types, rules between settings."""

import os
import re
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from outboxd.core.errors import SettingsError
from outboxd.core.settings import Settings
from outboxd.core.settings_decoding import decode_settings
from outboxd.core.settings_rules import broken_rules

MAX_FILE_BYTES = 1 << 20
MAX_SECRET_BYTES = 1 << 16

_TOML_POSITION = re.compile(
    r"^(?P<what>.*) \(at (?P<where>line \d+, column \d+|end of document)\)$"
)


def load_settings(path: Path, environ: Mapping[str, str]) -> Settings:
    """The settings of a configuration file.

    Raises SettingsError with one line for each problem, all of them: first those of single
    settings; once each setting is understood by itself, those of how they go together. Relative
    paths in the file are relative to its directory. This module imports neither boto3 nor psycopg,
    because the supervisor's process imports it.
    """
    try:
        return _load(path, environ)
    except SettingsError as error:
        raise SettingsError([f"{path}: {problem}" for problem in error.problems]) from None


def _load(path: Path, environ: Mapping[str, str]) -> Settings:
    directory = Path(os.path.abspath(path)).parent
    remedy = "; name the file with --config or OUTBOXD_CONFIG"
    tables = _with_region(_parse(_read(path, MAX_FILE_BYTES, remedy)), environ)
    settings = decode_settings(tables, environ, lambda name: _read_secret(directory / name))
    settings = msgspec.structs.replace(
        settings, import_path=_import_path(settings.import_path, directory)
    )
    if problems := broken_rules(settings):
        raise SettingsError(problems)
    return settings


def _with_region(tables: dict[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """The region that the environment names for every SDK of AWS, where the file names none."""
    region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")
    aws = tables.get("aws", {})
    if not region or not isinstance(aws, dict) or "region" in aws:
        return tables
    return {**tables, "aws": {**aws, "region": region.replace("${", "$${")}}


def _parse(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError([_syntax_problem(str(error))]) from None
    except ValueError as error:  # an integer of more digits than Python converts, for one
        raise SettingsError([f"cannot be read as TOML: {error}"]) from None
    except RecursionError:
        raise SettingsError(["cannot be read as TOML: its arrays are nested too deeply"]) from None


def _syntax_problem(message: str) -> str:
    """tomllib's message, where it is first: `line 3, column 5: Invalid value`."""
    match = _TOML_POSITION.match(message)
    return f"{match['where']}: {match['what']}" if match else message


def _read(path: Path, limit: int, remedy: str = "") -> str:
    """A file's text. Raises SettingsError if it is not there, not text, or above `limit` bytes."""
    try:
        # A directory opens on no platform, but what open() says of it is not always the reason.
        if stat.S_ISDIR(os.stat(path).st_mode):
            raise SettingsError(["is a directory, not a file"])
        with path.open("rb") as file:
            content = file.read(limit + 1)
    except FileNotFoundError:
        raise SettingsError([f"does not exist{remedy}"]) from None
    except OSError as error:
        raise SettingsError([f"cannot be read: {error.strerror or error}"]) from None
    except ValueError as error:  # a NUL in the path
        raise SettingsError([f"cannot be read: {error}"]) from None
    if len(content) > limit:
        raise SettingsError([f"is longer than {limit} bytes"])
    try:
        return content.decode("utf-8-sig")  # Windows editors write a mark
    except UnicodeDecodeError as error:
        raise SettingsError([f"is not UTF-8: byte {error.start} does not decode"]) from None


def _read_secret(path: Path) -> str:
    """A secret's file without its last line's end, which editors and `echo` add.

    References in it are not expanded: a password may contain `${`.
    """
    try:
        secret = _read(path, MAX_SECRET_BYTES).rstrip("\r\n")
    except SettingsError as error:
        raise SettingsError([f"{path} {problem}" for problem in error.problems]) from None
    if secret.strip() == "":
        raise SettingsError([f"{path} is empty"])
    if "\0" in secret:
        raise SettingsError([f"{path} contains a NUL character"])
    return secret


def _import_path(given: tuple[str, ...], directory: Path) -> tuple[str, ...]:
    """Where handlers are imported from, absolute, because children may not share the directory.

    Default: the directory of the configuration file, then the working directory.
    """
    if not given:
        return tuple(dict.fromkeys([str(directory), os.getcwd()]))
    entries = [os.path.normpath(directory / entry) for entry in given]
    problems = [
        f"import_path #{number}: {entry} is not a directory"
        for number, entry in enumerate(entries, start=1)
        if not os.path.isdir(entry)
    ]
    if problems:
        raise SettingsError(problems)
    return tuple(dict.fromkeys(entries))
