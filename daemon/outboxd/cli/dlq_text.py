"""One dead letter for people: in a few lines of a list, or all of it."""

import json
from collections.abc import Iterator

from outboxd.adapters.sqs.letter_reports import DeadLetterQueue
from outboxd.cli.dlq_inbox import Standing
from outboxd.cli.dlq_json import seconds_left
from outboxd.cli.wording import at, counted, lasting, line, shortened
from outboxd.core.letters import ATTRIBUTE
from outboxd.core.messages import Attribute
from outboxd.core.redrive import MAX_RECEIVES, Entry


def print_entry(
    about: DeadLetterQueue, entry: Entry, now: float, standing: Standing | None, *, body: bool
) -> None:
    """What a list shows: the error is shortened."""
    facts = entry.facts
    _print_head(entry)
    for handler in facts.handlers:
        print(f"    handler   {line(handler.name)}, {counted(handler.attempts, 'attempt')}")
    _print_receives(entry)
    if facts.error:
        print(f"    error     {shortened(facts.error)}")
    _print_standing(standing)
    _print_age(about, entry, now)
    if body:
        _print_body(entry.message.body)


def print_whole(
    about: DeadLetterQueue, entry: Entry, now: float, standing: Standing | None, *, body: bool
) -> None:
    """Everything: whole errors, each handler's own, when, and the attributes."""
    facts, message = entry.facts, entry.message
    _print_head(entry)
    for handler in facts.handlers:
        attempts = counted(handler.attempts, "attempt")
        print(f"    handler   {line(handler.name)}, {attempts}, {line(handler.reason)}")
        _print_lines("error", handler.error)
    _print_receives(entry)
    if facts.error and facts.error not in [handler.error for handler in facts.handlers]:
        _print_lines("error", facts.error)
    _print_standing(standing)
    _print_age(about, entry, now)
    print(f"    sent at   {at(message.sent_at)}")
    if facts.message_id is not None:
        print(
            f"    was       message {line(facts.message_id)} of {line(facts.source_queue or '?')}"
        )
    for name, attribute in message.attributes.items():
        if name != ATTRIBUTE:
            print(f"    attribute {line(name)} ({line(attribute.data_type)}): {_value(attribute)}")
    if facts.dropped_attributes:
        print(f"    left out  {line(', '.join(facts.dropped_attributes))}")
    size = counted(len(message.body.encode("utf-8", "surrogatepass")), "byte")
    if body:
        _print_body(message.body)
    else:
        print(f"    body      {size}; --body shows it")


def _print_head(entry: Entry) -> None:
    facts = entry.facts
    print(f"{entry.message.message_id}  {line(facts.event_type or '(type unknown)')}")
    print(f"    event     {line(facts.event_id or '(none)')}")
    if entry.message.group_id is not None:
        print(f"    group     {line(entry.message.group_id)}")
    why = " (as a rule moved by SQS, which says no more)" if facts.reason == MAX_RECEIVES else ""
    print(f"    reason    {line(facts.reason)}{why}")


def _print_receives(entry: Entry) -> None:
    if not entry.facts.handlers and entry.facts.receive_count is not None:
        print(f"    receives  {entry.facts.receive_count}")


def _print_standing(standing: Standing | None) -> None:
    if standing is not None:
        nothing = "; a redrive changes nothing" if standing.nothing_left else ""
        print(f"    processed by {line(', '.join(standing.processed_by))} before{nothing}")


def _print_age(about: DeadLetterQueue, entry: Entry, now: float) -> None:
    left = seconds_left(about, entry, now)
    remaining = f"{lasting(left)} left" if left > 0 else "about to be deleted by SQS"
    print(f"    age       {lasting(now - entry.message.sent_at)}, {remaining}")


def _print_body(body: str) -> None:
    _print_lines("body", "\n".join(_readable(body)))


def _readable(body: str) -> Iterator[str]:
    try:
        yield json.dumps(json.loads(body), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        yield body


def _print_lines(label: str, text: str) -> None:
    """Text of several lines keeps them, and its indentation, but moves no cursor."""
    for number, each in enumerate(text.splitlines() or [""]):
        clean = "".join(sign if sign.isprintable() else "?" for sign in each.replace("\t", "    "))
        print(f"    {label if number == 0 else '':9} {clean}")


def _value(attribute: Attribute) -> str:
    match attribute.value:
        case str(text):
            return line(text)
        case bytes(data):
            return counted(len(data), "byte")
