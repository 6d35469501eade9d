"""How one event's life is told: a timeline, and where it stands now."""

from collections.abc import Iterator
from uuid import UUID

from outboxd.cli.outbox_output import as_json, explained, print_json
from outboxd.cli.wording import ago, at, iso, line, shortened
from outboxd.core.event_history import DeadLetterFound, Life, timeline
from outboxd.core.outbox_standing import Published, standing, state_of
from outboxd.core.routes import RouteTable
from outboxd.core.settings import Settings


def print_life(event: UUID, life: Life, settings: Settings, now: float) -> None:
    """What happened, in order of time, then what to know or to do now."""
    print(f"event {event}")
    for moment in timeline(life):
        print(f"  {at(moment.at)}  {ago(now - moment.at):>15}  {line(moment.what)}")
        if moment.detail:
            print(f"{'':40}{shortened(moment.detail)}")
    for each in _now(event, life, settings, now):
        print(f"now: {line(each)}")
    if not life.known:
        print("nothing is known of it")
    print(end="", flush=True)


def print_life_json(event: UUID, life: Life, settings: Settings, now: float) -> None:
    """The same, place by place."""
    print_json(
        {
            "event_id": str(event),
            "known": life.known,
            "outbox": [as_json(row, now) for row in life.rows],
            "done": [
                {"handler": mark.handler, "processed_at": iso(mark.processed_at)}
                for mark in life.marks
            ],
            "failures": [
                {
                    "handler": failure.handler,
                    "message_id": failure.message_id,
                    "attempts": failure.attempts,
                    "last_error": failure.last_error,
                    "last_failed_at": iso(failure.last_failed_at),
                    "dead_at": iso(failure.dead_at),
                }
                for failure in life.failures
            ],
            "suspected": [
                {
                    "queue": each.queue,
                    "message_id": each.message_id,
                    "crashes_alone": each.crashes_alone,
                    "reason": each.reason,
                    "last_crash_at": iso(each.last_crash_at),
                }
                for each in life.suspected
            ],
            "letters": [
                {
                    "queue": letter.queue,
                    "dead_letter_queue": letter.dead_letter_queue,
                    "message_id": letter.message_id,
                    "reason": letter.reason,
                    "error": letter.error,
                    "handlers": letter.handlers,
                    "sent_at": iso(letter.sent_at),
                }
                for letter in life.letters
            ],
            "unasked": list(life.unasked),
        }
    )


def _now(event: UUID, life: Life, settings: Settings, now: float) -> Iterator[str]:
    for row in life.rows:
        stands = standing(row, now)
        if isinstance(stands, Published):
            yield f"published{_to(row.event_type, row.aggregate_type, settings)}"
        else:
            yield f"in the outbox, {state_of(stands)}: {explained(stands, now, alone=row.alone)}"
            if row.delivered_to:
                yield f"delivered to {', '.join(row.delivered_to)}, and nowhere else yet"
    done = {mark.handler for mark in life.marks}
    if done:
        yield f"done by {', '.join(sorted(done))}"
    for failure in life.failures:
        if failure.dead_at is None and failure.handler not in done:
            yield f"handler {failure.handler} is tried again when its message comes back"
    for letter in life.letters:
        yield _letter(event, letter)
    if life.rows and not (done or life.failures or life.letters):
        yield "no handler of this database has finished or failed it yet"


def _letter(event: UUID, letter: DeadLetterFound) -> str:
    redrive = f"`outboxd dlq redrive {letter.queue} --id {event}` sends it back"
    return f"a dead letter of {letter.queue} ({letter.reason}); {redrive}"


def _to(event_type: str, aggregate_type: str, settings: Settings) -> str:
    """Where the routes of today send such an event; they may have been others then."""
    if settings.relay is None:
        return ""
    route = RouteTable(settings.relay.routes).find(event_type, aggregate_type)
    return "" if route is None else f", by the routes of today to {', '.join(route.to)}"
