"""docs/settings.md, written from the types of the settings and the comments of the reference."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from outboxd.core.settings import Settings
from outboxd.resources import project_directory
from tests.markdown import table
from tests.settings import reference
from tests.settings.catalogue import Setting, Table, catalogue
from tests.settings.prose import anchor, as_markdown, as_one_text
from tests.settings.reloads import configuration, effect

PATH: Path = project_directory() / "docs" / "settings.md"

_INTRODUCTION = """\
# Settings

Every setting, table by table. This page is made from the code and from the comments of
[config/outboxd.toml](../config/outboxd.toml) (`python -m tests.settings`), and a test compares them. What holds
for all settings, such as references to the environment and secrets, is in
[configuration.md](configuration.md).

`<name>` in the header of a table is a name that you choose. "Not set" means that the setting may be left out
and has no value of its own then. The last column is which child processes `outboxd reload` restarts when the
setting has changed: "no child" where the new value is used without that, "refused" where the daemon has to be
restarted for it ([control.md](control.md#what-a-reload-does)).
"""  # noqa: E501

_COLUMNS = ["setting", "type and range", "default", "meaning", "a reload restarts"]


def page() -> str:
    """docs/settings.md."""
    text = reference.PATH.read_text(encoding="utf-8")
    tables = catalogue(reference.reference(text))
    sections = _Sections(configuration(text), links(tables))
    return "\n".join([_INTRODUCTION, *map(sections.written, tables)])


def heading(header: str) -> str:
    return f"`{header}`" if header else "Above all tables"


def links(tables: Iterable[Table]) -> dict[str, str]:
    """Where each table is told of; `[queues]`, of which there are only `[queues.<name>]`, too."""
    found: dict[str, str] = {}
    for told in tables:
        target = f"#{anchor(heading(told.header))}"
        found[told.header] = target
        parent, _, _ = told.header.partition(".")
        found.setdefault(f"{parent}]", target)
    return found


class _Sections:
    """Writes one table after another."""

    def __init__(self, shown: Settings, targets: Mapping[str, str]) -> None:
        """`shown` is a configuration in which each setting has a value."""
        self._shown = shown
        self._targets = targets

    def written(self, told: Table) -> str:
        rows = map(self._row, told.settings)
        return "\n\n".join(
            [f"## {heading(told.header)}", *self._about(told), table(_COLUMNS, rows)]
        )

    def _about(self, told: Table) -> Iterator[str]:
        """What the code says, and the comment, which may begin with the same."""
        comment = as_one_text(told.comment.lines) if told.comment else ""
        if told.purpose and not _words(comment).startswith(_words(told.purpose)):
            yield self._markdown(told.purpose)
        if comment:
            yield self._markdown(comment)

    def _row(self, setting: Setting) -> list[str]:
        return [
            f"`{setting.name}`",
            self._markdown(setting.allowed),
            setting.default,
            self._meaning(setting),
            effect(self._shown, setting.path),
        ]

    def _meaning(self, setting: Setting) -> str:
        assert setting.comment is not None, f"config/outboxd.toml leaves out {setting.path}"
        *_, first = setting.comment.first
        if first != setting.name:
            return f"See `{first}`."
        return self._markdown(as_one_text(setting.comment.lines))

    def _markdown(self, text: str) -> str:
        return as_markdown(text, self._targets)


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))
