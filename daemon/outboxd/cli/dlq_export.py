"""`outboxd dlq export`: dead letters as lines of JSON, with what it takes to send them again."""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from outboxd.cli.dlq_arguments import add_common, add_filters, add_limit, selection_of
from outboxd.cli.dlq_work import add_act, verdict
from outboxd.cli.long_work import progress_line
from outboxd.core.errors import OutboxdError

if TYPE_CHECKING:
    from outboxd.adapters.sqs.dead_letters import DeadLetters
    from outboxd.adapters.sqs.letter_reports import Report
    from outboxd.core.letter_filters import Selection
    from outboxd.core.redrive import Entry
    from outboxd.core.settings import Settings


class NotWritten(OutboxdError):
    """The file cannot be written; the text says why, and what is in it."""


def add_action(actions: Any) -> None:
    """Describe the action to argparse."""
    parser = actions.add_parser(
        "export",
        help="write dead letters as lines of JSON",
        description=(
            "Writes each dead letter as one line of JSON, to standard output or to a new file that "
            "only you can read: with its body, which may hold personal data, and under `send` what "
            "SQS's SendMessage wants to be given. Deletes nothing; leaves the traces that `list` "
            "leaves."
        ),
        epilog="example: outboxd dlq export order-events --type 'order.*' --to letters.ndjson",
    )
    add_common(parser)
    add_filters(parser)
    add_limit(parser, "export")
    parser.add_argument(
        "--to", type=Path, metavar="FILE", help="a file that does not exist yet (default: output)"
    )
    add_act(parser, _export)


def _export(
    arguments: argparse.Namespace, settings: "Settings", stopping: Callable[[], bool]
) -> int:
    from outboxd.adapters.sqs.dead_letters import WORKING_SECONDS, dead_letters
    from outboxd.cli.dlq_output import print_exported, print_exported_json

    selection = selection_of(arguments, settings, time.time())
    with (
        dead_letters(
            settings, arguments.queue, hidden_seconds=WORKING_SECONDS, stopping=stopping
        ) as letters,
        _opened(arguments.to) as file,
    ):
        report = _written(arguments, letters, selection, file)
    if arguments.to is not None:
        show = print_exported_json if arguments.json else print_exported
        show(letters.about, report, arguments.to)
    return verdict(arguments.limit, letters, report, selection)


def _written(
    arguments: argparse.Namespace,
    letters: "DeadLetters",
    selection: "Selection",
    file: IO[bytes],
) -> "Report":
    import anyio

    from outboxd.cli.dlq_output import exported

    def write(entries: "Sequence[Entry]") -> None:
        for entry in entries:
            file.write(exported(letters, entry, time.time()))

    with progress_line("letters", letters.about.visible) as told:

        async def work() -> "Report":
            return await letters.export(
                selection,
                arguments.limit,
                write,
                lambda report: told(report.looked_at, f", {len(report.found)} exported"),
            )

        return anyio.run(work)


@contextmanager
def _opened(path: Path | None) -> Iterator[IO[bytes]]:
    """Standard output, or a new file that nobody else may read. Raises NotWritten.

    It is on the disk when the block ends, for the next command may be a purge.
    """
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        # Never over an older one: it may be all that is left of letters that were purged.
        file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
    except OSError as error:
        raise NotWritten(f"{path} cannot be made: {error.strerror}; nothing was done") from error
    with file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
        except OSError as error:
            raise NotWritten(f"{path} is not complete: {error.strerror}") from error
