"""Where lines go: standard output, in which repeats are counted instead of written."""

import copy
import logging
import sys
import threading
from collections.abc import Hashable
from typing import TextIO

from outboxd.core.clock import boottime
from outboxd.core.log_facts import EVENT_LOGGER, HANDLER_LOGGER
from outboxd.core.repeats import WINDOW_SECONDS, Repeats

COUNTED = ("outboxd", "boto3", "botocore", "urllib3", "psycopg", "uvicorn", "asyncio")
"""The loggers whose repeats are counted. An application's own lines are its own affair."""

_KIND = ("child", "queue", "handler", "destination", "reason", "kind")
"""Lines of the same text that differ in one of these facts are of different kinds."""


class Output(logging.StreamHandler[TextIO]):
    """Writes lines; of one kind at most `repeats_per_minute`, and then one line with `repeated`.

    That line is the last one of those that were held back, and comes when their minute is over, or
    when the process ends.
    """

    def __init__(
        self, stream: TextIO, repeats_per_minute: int, *, window_seconds: float = WINDOW_SECONDS
    ) -> None:
        super().__init__(stream)
        self._repeats: Repeats[logging.LogRecord] = Repeats(
            repeats_per_minute, window_seconds=window_seconds
        )
        self._timer: threading.Timer | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write it, or count it. The lock of the handler is held."""
        now = boottime()
        self._write_ended(now)
        kind = _kind(record)
        if kind is None or self._repeats.admit(kind, record, now):
            super().emit(record)
        else:
            self._wake(now)

    def close(self) -> None:
        """Write what was held back."""
        self.acquire()
        try:
            if self._timer is not None:
                self._timer.cancel()
            for record, count in self._repeats.all():
                super().emit(_with_count(record, count))
        finally:
            self.release()
        super().close()

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Nobody who has closed our standard output wants a traceback for each line."""
        if not isinstance(sys.exc_info()[1], BrokenPipeError):
            super().handleError(record)

    def _write_ended(self, now: float) -> None:
        for record, count in self._repeats.ended(now):
            super().emit(_with_count(record, count))

    def _wake(self, now: float) -> None:
        """A thread only while something is held back: it may be long until the next line."""
        at = self._repeats.next_end()
        if self._timer is None and at is not None:
            self._timer = threading.Timer(max(0.0, at - now), self._woken)
            self._timer.daemon = True
            self._timer.start()

    def _woken(self) -> None:
        self.acquire()
        try:
            self._timer = None
            now = boottime()
            self._write_ended(now)
            self._wake(now)
        finally:
            self.release()


def _kind(record: logging.LogRecord) -> Hashable | None:
    name = record.name
    if name in (HANDLER_LOGGER, EVENT_LOGGER) or name.partition(".")[0] not in COUNTED:
        return None
    facts = vars(record)
    raised = record.exc_info[0] if record.exc_info else None
    return (
        name,
        record.levelno,
        record.msg if isinstance(record.msg, str) else None,
        raised,
        *(str(facts.get(each)) for each in _KIND),
    )


def _with_count(record: logging.LogRecord, count: int) -> logging.LogRecord:
    told = copy.copy(record)
    told.repeated = count
    return told
