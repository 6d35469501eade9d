"""Turning a process's log on, by its settings."""

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from typing import TextIO

from outboxd.adapters.logging.output import COUNTED, Output
from outboxd.adapters.logging.rendering import Facts, console_lines, json_line, local_time, utc
from outboxd.adapters.logging.structlog_alone import structlog
from outboxd.core.redaction import redactor, secrets_in_environment, secrets_of
from outboxd.core.settings import Settings

log = logging.getLogger(__name__)

_LIBRARIES = ("boto3", "botocore", "urllib3", "psycopg.pool", "uvicorn")


def configure_logging(
    settings: Settings,
    process: str,
    *,
    environ: Mapping[str, str] = os.environ,
    stream: TextIO | None = None,
) -> "Log":
    """Send every record of this process to standard output, or to `stream`, as configured.

    Lines of structlog's own loggers go the same way, for handlers that use them.
    """
    wanted = settings.logging
    stream = stream if stream is not None else sys.stdout
    person = wanted.format == "text" or (wanted.format == "auto" and stream.isatty())
    secrets = [*secrets_of(settings), *secrets_in_environment(environ)]
    facts = Facts(
        process,
        redactor(secrets),
        local_time if person else utc,
        payloads=wanted.payloads,
    )
    colours = person and stream.isatty() and not environ.get("NO_COLOR")
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[structlog.processors.format_exc_info],
        processors=[facts, console_lines(colours=colours) if person else json_line],
    )
    output = Output(stream, wanted.repeats_per_minute)
    output.setFormatter(formatter)
    configured = Log(output, logging.getLevelNamesMapping()[wanted.level.upper()])
    configured.begin()
    root = logging.getLogger()
    # The SDK logs request bodies at debug level; the HTTP server greets, and is ours to announce.
    for library in _LIBRARIES:
        logging.getLogger(library).setLevel(max(logging.WARNING, root.level))
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.contextvars.merge_contextvars,
            structlog.processors.format_exc_info,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    return configured


class Log:
    """The log of this process, as it was configured."""

    def __init__(self, output: Output, level: int) -> None:
        self._output = output
        self._level = level

    def begin(self) -> None:
        """Take the place of what was there: of another configuration, after a reload."""
        root = logging.getLogger()
        old = root.handlers[:]
        root.handlers[:] = [self._output]
        root.setLevel(self._level)
        for each in old:
            if isinstance(each, Output):
                each.close()  # which writes what it has held back

    def restore(self) -> None:
        """Undo what was done to it while the modules of handlers were imported.

        `logging.basicConfig(force=True)` puts lines with their secrets on standard error, and
        `logging.config.dictConfig` by default silences every logger that there is. Handlers of
        logging that go elsewhere, such as those of error trackers, stay.
        """
        root = logging.getLogger()
        others = [each for each in root.handlers if not self._doubles(each)]
        silenced = [each for each in _loggers() if each.disabled]
        changed = root.handlers[:1] != [self._output] or len(others) + 1 < len(root.handlers)
        root.handlers[:] = [self._output, *others]
        root.setLevel(self._level)
        logging.disable(logging.NOTSET)
        for each in silenced:
            each.disabled = False
        if changed or silenced:
            log.warning("the log was set up anew; a module of a handler had changed it")

    def _doubles(self, handler: logging.Handler) -> bool:
        if handler is self._output:
            return True
        streams = (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
        return isinstance(handler, logging.StreamHandler) and handler.stream in streams


def _loggers() -> Iterator[logging.Logger]:
    """Ours, and those of the libraries that we use."""
    for name, logger in logging.root.manager.loggerDict.items():
        if isinstance(logger, logging.Logger) and name.partition(".")[0] in COUNTED:
            yield logger
