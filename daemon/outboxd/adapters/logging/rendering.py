"""From a log record to its line: which facts it has, in which order, and what is taken out."""

import json
import logging
import time
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

import msgspec

from outboxd.adapters.logging.structlog_alone import structlog
from outboxd.core.log_facts import CALL_FACTS, facts_of, payload_of
from outboxd.core.redaction import MASK, names_a_secret, redacted_within

Line = MutableMapping[str, Any]

LONGEST_TEXT = 8192
"""Longer texts lose their middle: whoever collects lines cuts long ones, and JSON with them."""

DEEPEST = 6
"""Facts that are nested deeper than this are told as text."""


class Facts:
    """The processor for structlog that makes a line's facts.

    `process` is who wrote the line, `child` the child process that it is about: in a child's own
    lines that child, in the supervisor's lines the one they speak of, if they speak of one.
    """

    def __init__(
        self,
        process: str,
        redact: Callable[[str], str],
        clock: Callable[[logging.LogRecord], str],
        *,
        payloads: bool,
    ) -> None:
        self._process = process
        self._time = clock
        self._child = {} if process == "supervisor" else {"child": process}
        self._redact = redact
        self._payloads = payloads

    def __call__(self, logger: object, method: str, event: Line) -> Line:
        """`event` has the text and the traceback, and what the loggers of structlog are given; what
        those of the standard library are given is in its record."""
        record: logging.LogRecord = event.pop("_record")
        del event["_from_structlog"]
        line: dict[str, Any] = {
            "time": self._time(record),
            "level": record.levelname.lower(),
            "process": self._process,
            "logger": record.name,
            "message": self._clean(str(event.pop("event", ""))),
        }
        facts = {**self._child, **CALL_FACTS.get()(), **facts_of(record), **event}
        if self._payloads and (payload := payload_of(record)) is not None:
            facts["payload"] = payload.text()
        for name, value in facts.items():
            # A fact with one of our names is told beside it, not instead.
            key = f"{name}_" if name in line else str(name)
            line[key] = self._shown(key, value)
        return line

    def _shown(self, name: str, value: object, depth: int = 0) -> object:
        match value:
            case None | bool() | int() | float():
                return value
            case _ if names_a_secret(name):
                return MASK
            case Mapping() if depth < DEEPEST:
                return {str(key): self._shown(str(key), value[key], depth + 1) for key in value}
            case list() | tuple() | set() | frozenset() if depth < DEEPEST:
                return [self._shown(name, each, depth + 1) for each in value]
            case _:
                return self._clean(_text(value))

    def _clean(self, text: str) -> str:
        return redacted_within(text, LONGEST_TEXT, self._redact)


def json_line(logger: object, method: str, line: Line) -> str:
    """The line as JSON. Never an error: a line with half a character is still a line."""
    try:
        return msgspec.json.encode(line).decode()
    except (UnicodeError, OverflowError, msgspec.MsgspecError):
        return json.dumps(line, default=str)  # escapes what is not ASCII


def console_lines(*, colours: bool) -> Callable[[object, str, Line], str]:
    """Lines for a person."""
    console = structlog.dev.ConsoleRenderer(
        colors=colours,
        sort_keys=False,
        event_key="message",
        timestamp_key="time",
        exception_formatter=structlog.dev.plain_traceback,
    )

    def render(logger: object, method: str, line: Line) -> str:
        process = line.pop("process")
        if line.get("child") == process:
            del line["child"]
        line["logger"] = process  # in brackets after the text
        return str(console(logger, method, line))

    return render


def utc(record: logging.LogRecord) -> str:
    """When the line was written, for machines."""
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{seconds}.{int(record.msecs):03d}Z"


def local_time(record: logging.LogRecord) -> str:
    """When the line was written, for a person who sees it come."""
    seconds = time.strftime("%H:%M:%S", time.localtime(record.created))
    return f"{seconds}.{int(record.msecs):03d}"


def _text(value: object) -> str:
    try:
        return str(value)
    except Exception as error:  # a line must cost nobody anything
        return f"<{type(value).__name__} without a text: {type(error).__name__}>"
