"""Where in a configuration file something stands, in the file's own notation."""

import json
import re

import msgspec

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


class Place(msgspec.Struct, frozen=True):
    """A table, or one key of it: `[http] port`, `[[relay.routes]] #2 to #1`."""

    table: str = ""
    entry: str = ""
    key: str = ""

    def __str__(self) -> str:
        brackets = ("[[", "]]") if self.entry else ("[", "]")
        header = self.table.join(brackets) if self.table else ""
        return " ".join(part for part in (header, self.entry, self.key) if part)

    def subtable(self, name: str) -> "Place":
        """The table of that name in this one."""
        if self.entry:  # an array's entry has no name to put into brackets
            return self.at(name)
        return Place(table=f"{self.table}.{_quoted(name)}" if self.table else _quoted(name))

    def element(self, number: int, name: str | None = None) -> "Place":
        """The entry of this array of tables, counted from 1; its name makes it easy to find."""
        known_as = f"#{number} ({name})" if name else f"#{number}"
        return Place(table=self.table, entry=known_as)

    def at(self, key: str) -> "Place":
        """The key of that name in this table."""
        path = f"{self.key}.{_quoted(key)}" if self.key else _quoted(key)
        return msgspec.structs.replace(self, key=path)

    def item(self, number: int) -> "Place":
        """The item of the array at this key, counted from 1."""
        return msgspec.structs.replace(self, key=f"{self.key} #{number}")


def _quoted(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else json.dumps(key, ensure_ascii=False)
