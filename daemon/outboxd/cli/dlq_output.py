"""How dead letters, and what became of them, are printed: for people and for programs."""

import base64
from typing import Any

import msgspec

from outboxd.adapters.sqs.dead_letters import DeadLetterQueue, Report
from outboxd.core.messages import Attribute
from outboxd.core.redrive import MAX_RECEIVES, Entry

LONGEST_ERROR = 200


def print_listing(about: DeadLetterQueue, report: Report, now: float, *, limit: int | None) -> None:
    """A paragraph for each letter, and a last line that says how many there were."""
    for entry in report.found:
        _print_entry(about, entry, now)
    number = len(report.found)
    print(f"{_letters(number)} in {about.name}", end="")
    if number == limit and about.visible > number:
        print(f", the first of about {about.visible}", end="")
    print("; looking counts as a receive of each" if number else "", flush=True)


def print_listing_json(
    about: DeadLetterQueue, report: Report, now: float, *, limit: int | None
) -> None:
    """Everything that is known of each letter."""
    _print_json(
        {
            "dead_letter_queue": about.name,
            "approximate_visible": about.visible,
            "approximate_in_flight": about.in_flight,
            "limit": limit,
            "cut_groups": report.cut_groups,
            "letters": [_whole(about, entry, now) for entry in report.found],
        }
    )


def print_redriven(about: DeadLetterQueue, target: str, report: Report) -> None:
    """One line for what was done, and one for what was left on purpose."""
    print(f"redriven: {_letters(len(report.done))} from {about.name} to {target}", flush=True)
    if report.came_back:
        print(f"came back, and left: {_letters(len(report.came_back))}", flush=True)


def print_redriven_json(about: DeadLetterQueue, target: str, report: Report) -> None:
    """Which letter went where, by their own ids and those of their events."""
    _print_json(
        {
            "dead_letter_queue": about.name,
            "queue": target,
            "redriven": [_brief(entry) for entry in report.done],
            "failed": [
                {**_brief(f.entry), "error": f.error, "sent": f.sent} for f in report.failed
            ],
            "came_back": [_brief(entry) for entry in report.came_back],
            "cut_groups": report.cut_groups,
        }
    )


def _print_entry(about: DeadLetterQueue, entry: Entry, now: float) -> None:
    facts = entry.facts
    print(f"{entry.message.message_id}  {_line(facts.event_type or '(type unknown)')}")
    print(f"    event     {_line(facts.event_id or '(none)')}")
    if entry.message.group_id is not None:
        print(f"    group     {_line(entry.message.group_id)}")
    why = " (as a rule moved by SQS, which says no more)" if facts.reason == MAX_RECEIVES else ""
    print(f"    reason    {_line(facts.reason)}{why}")
    for handler in facts.handlers:
        print(f"    handler   {_line(handler.name)}, {_attempts(handler.attempts)}")
    if not facts.handlers and facts.receive_count is not None:
        print(f"    receives  {facts.receive_count}")
    if facts.error:
        print(f"    error     {_shortened(facts.error)}")
    left = _left(about, entry, now)
    remaining = f"{_duration(left)} left" if left > 0 else "about to be deleted by SQS"
    print(f"    age       {_duration(now - entry.message.sent_at)}, {remaining}")


def _whole(about: DeadLetterQueue, entry: Entry, now: float) -> dict[str, Any]:
    message, facts = entry.message, entry.facts
    return {
        "message_id": message.message_id,
        "event_id": facts.event_id,
        "event_type": facts.event_type,
        "reason": facts.reason,
        "error": facts.error,
        "handlers": facts.handlers,
        "age_seconds": round(now - message.sent_at),
        "seconds_left": round(_left(about, entry, now)),
        "original": {
            "queue": facts.source_queue,
            "message_id": facts.message_id,
            "receive_count": facts.receive_count,
            "sent_at": facts.sent_at,
            "dead_lettered_at": facts.dead_lettered_at,
            "dropped_attributes": facts.dropped_attributes,
        },
        "receive_count": message.receive_count,
        "sent_at": message.sent_at,
        "group_id": message.group_id,
        "body": message.body,
        "attributes": {name: _attribute(a) for name, a in message.attributes.items()},
    }


def _brief(entry: Entry) -> dict[str, Any]:
    facts = entry.facts
    return {
        "message_id": entry.message.message_id,
        "event_id": facts.event_id,
        "event_type": facts.event_type,
        "reason": facts.reason,
    }


def _attribute(attribute: Attribute) -> dict[str, str]:
    match attribute.value:
        case str(text):
            return {"type": attribute.data_type, "value": text}
        case bytes(data):
            return {"type": attribute.data_type, "base64": base64.b64encode(data).decode()}


def _left(about: DeadLetterQueue, entry: Entry, now: float) -> float:
    return entry.message.sent_at + about.retention_seconds - now


def _letters(number: int) -> str:
    return "1 dead letter" if number == 1 else f"{number or 'no'} dead letters"


def _attempts(number: int) -> str:
    return "1 attempt" if number == 1 else f"{number} attempts"


def _shortened(text: str) -> str:
    line = _line(text)
    return line if len(line) <= LONGEST_ERROR else f"{line[: LONGEST_ERROR - 3]}..."


def _line(text: str) -> str:
    """One line that moves no cursor: what a message holds may come from anybody."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))


def _duration(seconds: float) -> str:
    """The two largest units: "13 d 22 h"."""
    rest = max(0, round(seconds))
    units = [("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)]
    parts: list[str] = []
    for unit, length in units:
        number, rest = divmod(rest, length)
        if number or (unit == "s" and not parts):
            parts.append(f"{number} {unit}")
    return " ".join(parts[:2])


def _print_json(content: dict[str, Any]) -> None:
    print(msgspec.json.encode(content).decode(), flush=True)
