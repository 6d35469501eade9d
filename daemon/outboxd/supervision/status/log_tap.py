"""The supervisor's own warnings and errors, kept for whoever looks."""

import logging
from collections.abc import Callable

from outboxd.core.log_facts import facts_of
from outboxd.core.redaction import redacted_within
from outboxd.supervision.status.troubles import LONGEST_TEXT, Troubles

LOGGER = "outboxd"
"""Not the root: a reload gives that one other handlers."""

_SHOWN_APART = frozenset({"child", "queue"})


class LogTap(logging.Handler):
    """Keeps what is worth a warning, redacted. It never raises: a log line must cost nobody
    anything."""

    def __init__(self, troubles: Troubles, redact: Callable[[str], str]) -> None:
        super().__init__(logging.WARNING)
        self._troubles = troubles
        self._redact = redact

    def emit(self, record: logging.LogRecord) -> None:
        try:
            facts = vars(record)
            source = str(facts.get("child") or facts.get("queue") or "supervisor")
            self._troubles.add(
                record.created,
                "error" if record.levelno >= logging.ERROR else "warning",
                self._redact(source),
                redacted_within(self._text(record), LONGEST_TEXT, self._redact),
            )
        except Exception:
            self.handleError(record)

    def _text(self, record: logging.LogRecord) -> str:
        facts = [
            f"{key}={value:.3g}" if isinstance(value, float) else f"{key}={value}"
            for key, value in facts_of(record).items()
            if key not in _SHOWN_APART
        ]
        error = record.exc_info[1] if record.exc_info else None
        told = [f"{type(error).__name__}: {error}"] if error is not None else []
        return " ".join([record.getMessage(), *facts, *told])
