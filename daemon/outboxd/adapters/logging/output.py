"""Where lines go: standard output, in which repeats are counted instead of written."""

import copy
import logging
import sys
import threading
from collections.abc import Hashable
from contextlib import suppress
from typing import TextIO

from outboxd.adapters.logging.writer import Writer
from outboxd.core.clock import boottime
from outboxd.core.log_facts import EVENT_LOGGER, HANDLER_LOGGER
from outboxd.core.repeats import WINDOW_SECONDS, Repeats

COUNTED = ("outboxd", "boto3", "botocore", "urllib3", "psycopg", "uvicorn", "asyncio")
"""The loggers whose repeats are counted. An application's own lines are its own affair."""

_KIND = ("child", "queue", "handler", "destination", "reason", "kind")
"""Lines of the same text that differ in one of these facts are of different kinds."""


class Output(logging.Handler):
    """Writes lines; of one kind at most `repeats_per_minute`, and then one line with `repeated`.

    That line is the last one of those that were held back, and comes when their minute is over, or
    when the process ends.
    """

    def __init__(
        self, stream: TextIO, repeats_per_minute: int, *, window_seconds: float = WINDOW_SECONDS
    ) -> None:
        super().__init__()
        self._writer = Writer(stream, self._dropped)
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
            self._write(record)
        else:
            self._wake(now)

    def close(self) -> None:
        """Write what was held back."""
        self.acquire()
        try:
            if self._timer is not None:
                self._timer.cancel()
            for record, count in self._repeats.all():
                self._write(_with_count(record, count))
        finally:
            self.release()
        self._writer.close()
        super().close()

    def flush(self) -> None:
        """Wait a moment for what has not been written yet."""
        self._writer.flush()

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """A line cannot be made, as when its arguments do not fit its text.

        Told without the traceback, which would show what redaction was to take out.
        """
        error = sys.exc_info()[0]
        name = "an error" if error is None else error.__name__
        with suppress(OSError, ValueError, AttributeError):
            sys.stderr.write(
                f"outboxd: a line of the log could not be made ({name}): logger {record.name}, "
                f"{record.pathname}:{record.lineno}\n"
            )

    def _write(self, record: logging.LogRecord) -> None:
        try:
            self._writer.write(self.format(record))
        except Exception:
            self.handleError(record)

    def _dropped(self, count: int) -> str:
        told = logging.makeLogRecord(
            {
                "name": __name__,
                "levelname": "WARNING",
                "levelno": logging.WARNING,
                "msg": "lines of the log were dropped; standard output was not read",
                "dropped": count,
            }
        )
        return self.format(told)

    def _write_ended(self, now: float) -> None:
        for record, count in self._repeats.ended(now):
            self._write(_with_count(record, count))

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
