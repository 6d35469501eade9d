"""Asks a person before something that cannot be undone."""

import signal
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
    _require_a_person(what)
    print(f"{what}. Go on? [y/N] ", end="", file=sys.stderr, flush=True)
    if _answer().lower() not in ("y", "yes"):
        raise NotConfirmed("not confirmed; nothing was done")


def confirm_by_name(what: str, name: str, *, yes: bool) -> None:
    """The same for what deletes for good: the person has to type the name of what it is about.

    A "y" comes too easily at night, in the window of another queue.
    """
    if yes:
        return
    _require_a_person(what)
    print(f"{what}. Type {name} to go on: ", end="", file=sys.stderr, flush=True)
    if _answer() != name:
        raise NotConfirmed("not confirmed; nothing was done")


def _answer() -> str:
    """What the person typed. A Ctrl-C here ends the command at once, whatever it is for later: to
    wait for the end of the work in hand is for work that has begun."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return sys.stdin.readline().strip()
    except KeyboardInterrupt:
        print(file=sys.stderr)
        raise
    finally:
        signal.signal(signal.SIGINT, before)


def _require_a_person(what: str) -> None:
    if sys.stdin is None or not sys.stdin.isatty():
        raise NotConfirmed(f"{what}: nobody to ask, for standard input is no terminal; give --yes")
