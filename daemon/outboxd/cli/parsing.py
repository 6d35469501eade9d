"""How each command reads its arguments, beyond what argparse does by itself."""

import argparse
import re
from collections.abc import Sequence
from typing import Any

from outboxd.core.errors import OutboxdError


class UsageError(OutboxdError):
    """The command line makes no sense, which argparse could not tell; the text says why."""


class CommandParser(argparse.ArgumentParser):
    """The parser of one command: it complains in the command's own name, and its example can be
    copied."""

    def __init__(self, *args: Any, epilog: str | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._example = epilog

    def format_help(self) -> str:
        """The help, its last paragraph as it was written: argparse would break a long line."""
        text = super().format_help()
        return text if self._example is None else f"{text}\n{self._example}\n"

    # argparse leaves what a command does not know to the parser of all commands, whose usage does
    # not list the options that were perhaps meant.
    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """The arguments; a usage error when there are others than this command knows."""
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self._meant(unknown)}")
        return known, unknown

    def _meant(self, unknown: Sequence[str]) -> str:
        from outboxd.core.expectations import (
            suggestion,
        )  # msgspec, which `healthcheck` can do without

        option = next((each.partition("=")[0] for each in unknown if each.startswith("--")), None)
        return suggestion(option, self._options()) if option is not None else ""

    def _options(self) -> list[str]:
        return [*re.findall(r"(?<![\w-])--[a-z][a-z-]*", self.format_usage()), "--help"]
