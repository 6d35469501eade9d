"""What handlers note while they are watched: when they began and when they ended."""

import os
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import psycopg

from benchmarks.workload import Payload
from outboxd import Event
from outboxd.core.clock import boottime

BEGAN, ENDED = "began", "ended"


class Noting:
    """A handler that takes so many seconds and notes both ends of them in a file."""

    def __init__(self, path: str, seconds: float = 0.0) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._seconds = seconds

    def __call__(self, event: Event[Payload], tx: psycopg.Connection) -> None:
        number = event.payload.number
        self._note(BEGAN, number, boottime())
        if self._seconds:
            time.sleep(self._seconds)
            self._note(ENDED, number, boottime())

    def _note(self, what: str, number: int, at: float) -> None:
        # One write of a line to the end of a file is not torn, and survives a SIGKILL.
        os.write(self._file, f"{what} {number} {at:.6f}\n".encode())


class Note(msgspec.Struct, frozen=True):
    """Event `number` at a moment of boottime()."""

    what: str
    number: int
    at: float


def notes(path: Path) -> list[Note]:
    """All that was noted so far, oldest first."""
    if not path.exists():
        return []
    # A line that is just being written has no end yet.
    lines = path.read_text().split("\n")[:-1]
    parts = (line.split() for line in lines)
    return [Note(what, int(number), float(at)) for what, number, at in parts]


class Handled(msgspec.Struct, frozen=True):
    """What became of events after a moment; seconds since then."""

    first_began: float
    last_ended: float
    unattended: float
    """In which none of them was being handled, until the last one was."""


def handled_after(noted: Sequence[Note], since: float, numbers: set[int]) -> Handled | None:
    """How these events were handled after `since`; None until all of them have been."""
    later = [note for note in noted if note.at > since and note.number in numbers]
    ended = {note.number: note.at for note in later if note.what == ENDED}
    if ended.keys() != numbers:
        return None
    began: dict[int, float] = {}
    for note in later:
        if note.what == BEGAN:
            began[note.number] = note.at  # the last attempt counts, as with `ended`
    covered_until, unattended = since, 0.0
    for number in sorted(numbers, key=began.__getitem__):
        unattended += max(0.0, began[number] - covered_until)
        covered_until = max(covered_until, ended[number])
    return Handled(
        first_began=min(began.values()) - since,
        last_ended=max(ended.values()) - since,
        unattended=unattended,
    )
