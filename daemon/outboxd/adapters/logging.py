"""Log records as one line each on standard error: JSON for machines, text for people."""

import json
import logging
import sys
import time
from typing import Any

from outboxd.core.settings import LoggingSettings

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def _facts(record: logging.LogRecord) -> dict[str, Any]:
    return {key: value for key, value in vars(record).items() if key not in _STANDARD}


class JsonFormatter(logging.Formatter):
    """The record's facts beside its constant text, so that neither has to be parsed out."""

    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "process": self._process,
            "logger": record.name,
            "message": record.getMessage(),
            **_facts(record),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


class TextFormatter(logging.Formatter):
    """A line for a terminal: time, level, process, text, then the facts as key=value."""

    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        facts = "".join(f" {key}={value}" for key, value in _facts(record).items())
        line = (
            f"{clock}.{int(record.msecs):03d} {record.levelname.lower():7} "
            f"{self._process:24} {record.getMessage()}{facts}"
        )
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def configure_logging(settings: LoggingSettings, process: str) -> None:
    """Send every record of this process to standard error in the configured form."""
    formatter = JsonFormatter(process) if settings.format == "json" else TextFormatter(process)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.level.upper())
    # The SDK logs request bodies at debug level; the HTTP server greets, and is ours to announce.
    for library in ("boto3", "botocore", "urllib3", "psycopg.pool", "uvicorn"):
        logging.getLogger(library).setLevel(max(logging.WARNING, root.level))
