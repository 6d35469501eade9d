"""How the actions of `outboxd dlq` begin, and what they complain about at the end."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from outboxd.cli.long_work import stopped_by_sigint
from outboxd.cli.wording import counted, shortened
from outboxd.core.errors import OutboxdError, Unavailable
from outboxd.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from collections import Counter

    from outboxd.adapters.sqs.dead_letters import DeadLetters
    from outboxd.adapters.sqs.letter_reports import DeadLetterQueue, Report
    from outboxd.core.letter_filters import Selection
    from outboxd.core.settings import Settings


_MOST_NAMES = 5


class NotKnown(OutboxdError):
    """There is no queue of that name; the text says which there are."""


def run(arguments: argparse.Namespace) -> int:
    """Do it; a first Ctrl-C waits until every letter is in its place."""
    from outboxd.adapters.configuration import load_settings
    from outboxd.core.expectations import suggestion

    settings = load_settings(arguments.config, os.environ)
    if arguments.queue not in settings.queues:
        near = suggestion(arguments.queue, list(settings.queues))
        raise NotKnown(f'[queues] has no "{arguments.queue}"{near}')
    with stopped_by_sigint() as stopping:
        code: int = arguments.act(arguments, settings, stopping)
        if stopping():
            raise KeyboardInterrupt
    return code


Act = Callable[[argparse.Namespace, "Settings", Callable[[], bool]], int]


def add_act(parser: argparse.ArgumentParser, act: Act) -> None:
    """Have `run` call it with the arguments, the settings, and whether it is time to stop."""
    parser.set_defaults(run=run, act=act)


def verdict(
    limit: int | None,
    letters: "DeadLetters",
    report: "Report",
    selection: "Selection",
    *,
    verb: str = "confirmed",
) -> ExitCode:
    """What went wrong, to standard error, and the exit code. Raises Unavailable for an outage."""
    about = letters.about
    for failure in report.failed:
        where = "sent, but also still" if failure.sent else f"not {verb}, so still"
        complain(f"{failure.entry.message.message_id}: {where} in {about.name}: {failure.error}")
    if report.still_hidden is not None:
        complain(
            f"letters could not be given back; they are visible again within two minutes: "
            f"{report.still_hidden}"
        )
    if report.elsewhere:
        complain(_of_others(report.elsewhere, letters))
    if report.outage is not None:
        raise Unavailable(report.outage)
    cut_short = letters.stopped or len(report.found) == limit
    missing = [] if cut_short else _missing(report, selection)
    if not cut_short:
        if report.cut_groups:
            complain(_hidden_behind(report.cut_groups))
        if about.in_flight and not missing:
            complain(_hidden_by_others(about))
    for each in missing:
        complain(_not_found(each, about, selection))
    return ExitCode.UNEXPECTED if missing or report.failed else ExitCode.OK


def complain(line: str) -> None:
    print(f"outboxd: {' '.join(line.split())}", file=sys.stderr)


def _not_found(each: str, about: "DeadLetterQueue", selection: "Selection") -> str:
    others = selection != type(selection).of(selection.ids, sources=selection.sources)
    fits = " and fits the other filters" if others else ""
    hidden = f"; {about.in_flight} were hidden from this look" if about.in_flight else ""
    return (
        f"no letter in {about.name} has the message id or event id {each}{fits}{hidden}; "
        f"`outboxd dlq list` shows what there is"
    )


def _of_others(elsewhere: "Counter[str]", letters: "DeadLetters") -> str:
    """What is written on a letter may come from anybody, and be anything."""
    names = sorted(elsewhere)
    of = ", ".join(shortened(name) for name in names[:_MOST_NAMES])
    more = f" and {len(names) - _MOST_NAMES} others" if len(names) > _MOST_NAMES else ""
    return (
        f"{counted(elsewhere.total(), 'letter')} in {letters.about.name} came from other SQS "
        f"queues than {letters.target} ({of}{more}) and stayed out of this: give the command their "
        "own queue, or --source if that was only renamed"
    )


def _hidden_by_others(about: "DeadLetterQueue") -> str:
    return (
        f"about {about.in_flight} of the letters of {about.name} were hidden when it began, by "
        "somebody who looks at them or by a command that was killed, and may be missing here; they "
        "are visible again within two minutes: repeat it then"
    )


def _hidden_behind(groups: "Sequence[str]") -> str:
    of = f"message group {groups[0]}" + (
        f" and {len(groups) - 1} others" if len(groups) > 1 else ""
    )
    return (
        f"of {of} there may be more letters: SQS shows ten of a group at the most, and those "
        "behind them once they are redriven or deleted"
    )


def _missing(report: "Report", selection: "Selection") -> list[str]:
    found: set[str] = set()
    for entry in [*report.found, *report.came_back, *report.newer]:
        found |= entry.ids
    return sorted(selection.ids - found)
