"""Asks a person before something that cannot be undone."""

import sys

from outboxd.core.errors import OutboxdError


class NotConfirmed(OutboxdError):
    """Nobody said yes, so nothing was done."""


def confirm(what: str, *, yes: bool) -> None:
    """Return when `yes` was given on the command line or by the person at the terminal.

    Raises NotConfirmed else. The question goes to standard error: standard output is for results.
    """
    if yes:
        return
    if sys.stdin is None or not sys.stdin.isatty():
        raise NotConfirmed(f"{what}: nobody to ask, for standard input is no terminal; give --yes")
    print(f"{what}. Go on? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise NotConfirmed("not confirmed; nothing was done")
