"""Turning a process's log on, by its settings."""

import logging
import os
import sys
from collections.abc import Mapping
from typing import TextIO

from outboxd.adapters.logging.output import Output
from outboxd.adapters.logging.rendering import Facts, console_lines, json_line, local_time, utc
from outboxd.adapters.logging.structlog_alone import structlog
from outboxd.core.redaction import redactor, secrets_in_environment, secrets_of
from outboxd.core.settings import Settings

_LIBRARIES = ("boto3", "botocore", "urllib3", "psycopg.pool", "uvicorn")


def configure_logging(
    settings: Settings,
    process: str,
    *,
    environ: Mapping[str, str] = os.environ,
    stream: TextIO | None = None,
) -> None:
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
    _replace_output(output)
    root = logging.getLogger()
    root.setLevel(wanted.level.upper())
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


def _replace_output(output: Output) -> None:
    """A reload brings another one; what the old one has held back is written now."""
    root = logging.getLogger()
    old = root.handlers[:]
    root.handlers[:] = [output]
    for each in old:
        if isinstance(each, Output):
            each.close()
