"""How dead letters, and what became of them, are printed: for people and for programs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from outboxd.adapters.sqs.dead_letters import DeadLetters
from outboxd.adapters.sqs.letter_reports import DeadLetterQueue, Report
from outboxd.cli.dlq_inbox import Standing
from outboxd.cli.dlq_json import brief, processed, sending, whole
from outboxd.cli.dlq_text import print_entry, print_whole
from outboxd.cli.wording import counted
from outboxd.core.redrive import Entry

Standings = Mapping[str, Standing]


class Listing(msgspec.Struct, frozen=True):
    """What a look found. `standings` is None where the inbox could not be asked, which
    `inbox_unasked` explains."""

    about: DeadLetterQueue
    report: Report
    now: float
    limit: int | None
    narrowed: bool
    standings: Standings | None
    inbox_unasked: str | None


def print_listing(listing: Listing, *, body: bool) -> None:
    """A paragraph for each letter, and a last line that says how many there were."""
    about, report = listing.about, listing.report
    for entry in report.found:
        print_entry(about, entry, listing.now, _standing(listing, entry), body=body)
    number = len(report.found)
    print(f"{_letters(number)} in {about.name}", end="")
    if number == listing.limit and about.visible > number:
        print(f", the first of about {about.visible}", end="")
    elif listing.narrowed or report.elsewhere:
        print(f" of {report.looked_at} looked at", end="")
    print("; looking counts as a receive of each" if report.looked_at else "", flush=True)


def print_letters(listing: Listing, *, body: bool) -> None:
    """Everything of each letter."""
    for entry in listing.report.found:
        print_whole(listing.about, entry, listing.now, _standing(listing, entry), body=body)
    print(end="", flush=True)


def print_listing_json(listing: Listing, *, body: bool) -> None:
    """Everything that is known of each letter."""
    about, report = listing.about, listing.report
    _print_json(
        {
            "dead_letter_queue": about.name,
            "approximate_visible": about.visible,
            "approximate_in_flight": about.in_flight,
            "limit": listing.limit,
            "looked_at": report.looked_at,
            "of_other_queues": report.elsewhere,
            "cut_groups": report.cut_groups,
            "inbox_unasked": listing.inbox_unasked,
            "letters": [
                {
                    **whole(about, entry, listing.now, body=body),
                    **processed(entry, listing.standings),
                }
                for entry in report.found
            ],
        }
    )


def print_redriven(letters: DeadLetters, report: Report, standings: Standings | None) -> None:
    """One line for what was done, and one each for what was left on purpose or for nothing."""
    name, number = letters.about.name, len(report.done)
    print(f"redriven: {_letters(number)} from {name} to {letters.target}", flush=True)
    if idle := sum(_nothing_left(entry, standings) for entry in report.done):
        print(f"of them processed before, by all their handlers: {idle}", flush=True)
    if report.came_back:
        print(f"came back, and left: {_letters(len(report.came_back))}", flush=True)


def print_redriven_json(letters: DeadLetters, report: Report, standings: Standings | None) -> None:
    """Which letter went where, by their own ids and those of their events."""
    _print_json(
        {
            **_work(letters.about, report),
            "queue": letters.target,
            "redriven": [{**brief(entry), **processed(entry, standings)} for entry in report.done],
            "failed": [{**brief(f.entry), "error": f.error, "sent": f.sent} for f in report.failed],
            "came_back": [brief(entry) for entry in report.came_back],
        }
    )


def print_purged(about: DeadLetterQueue, report: Report) -> None:
    """One line for what is gone, and one for what came too late to be meant."""
    print(f"purged: {_letters(len(report.done))} of {about.name}", flush=True)
    if report.newer:
        print(f"newer than this command, and left: {_letters(len(report.newer))}", flush=True)


def print_purged_json(about: DeadLetterQueue, report: Report) -> None:
    """Which letters are gone."""
    _print_json(
        {
            **_work(about, report),
            "purged": [brief(entry) for entry in report.done],
            "failed": [{**brief(f.entry), "error": f.error} for f in report.failed],
            "newer": len(report.newer),
        }
    )


def print_exported(about: DeadLetterQueue, report: Report, path: Path) -> None:
    """One line, when the letters themselves are in a file."""
    print(f"exported: {_letters(len(report.found))} of {about.name} to {path}", flush=True)


def print_exported_json(about: DeadLetterQueue, report: Report, path: Path) -> None:
    """The same for programs."""
    _print_json({**_work(about, report), "file": str(path), "exported": len(report.found)})


def exported(letters: DeadLetters, entry: Entry, now: float) -> bytes:
    """A letter as one line; `send` holds the body, once."""
    told = {
        "dead_letter_queue": letters.about.name,
        "queue": letters.target,
        **whole(letters.about, entry, now, body=False),
        "send": sending(entry, letters.target),
    }
    return msgspec.json.encode(told) + b"\n"


def _work(about: DeadLetterQueue, report: Report) -> dict[str, Any]:
    return {
        "dead_letter_queue": about.name,
        "approximate_in_flight": about.in_flight,
        "looked_at": report.looked_at,
        "of_other_queues": report.elsewhere,
        "cut_groups": report.cut_groups,
    }


def _standing(listing: Listing, entry: Entry) -> Standing | None:
    return None if listing.standings is None else listing.standings.get(entry.message.message_id)


def _nothing_left(entry: Entry, standings: Standings | None) -> bool:
    standing = None if standings is None else standings.get(entry.message.message_id)
    return standing is not None and standing.nothing_left


def _letters(number: int) -> str:
    return counted(number, "dead letter")


def _print_json(content: object) -> None:
    print(msgspec.json.format(msgspec.json.encode(content), indent=2).decode(), flush=True)
