"""One event's whole life, put together from what each place knows of it."""

from collections.abc import Iterator, Sequence

import msgspec

from outboxd.core.outbox_standing import FOREVER, Row


class HandlerMark(msgspec.Struct, frozen=True):
    """A handler is done with the event."""

    handler: str
    processed_at: float


class HandlerFailure(msgspec.Struct, frozen=True):
    """What is remembered of a handler that failed; `dead_at` says that it gave the event up."""

    handler: str
    message_id: str
    attempts: int
    last_error: str | None
    last_failed_at: float
    dead_at: float | None


class Suspected(msgspec.Struct, frozen=True):
    """A message of the event was in work when its process died."""

    queue: str
    message_id: str
    crashes_alone: int
    reason: str
    last_crash_at: float


class DeadLetterFound(msgspec.Struct, frozen=True):
    """The event is in a dead-letter queue."""

    queue: str
    dead_letter_queue: str
    message_id: str
    reason: str
    error: str
    sent_at: float
    handlers: tuple[str, ...] = ()


class Life(msgspec.Struct, frozen=True):
    """Everything that is known; empty when nothing is. `unasked` are places that could not be
    asked, or only in part, with the reason."""

    rows: Sequence[Row] = ()
    marks: Sequence[HandlerMark] = ()
    failures: Sequence[HandlerFailure] = ()
    suspected: Sequence[Suspected] = ()
    letters: Sequence[DeadLetterFound] = ()
    unasked: Sequence[str] = ()

    @property
    def known(self) -> bool:
        """Whether any place knows the event."""
        return bool(self.rows or self.marks or self.failures or self.suspected or self.letters)


class Moment(msgspec.Struct, frozen=True):
    """Something that happened to the event, at a Unix time."""

    at: float
    what: str
    detail: str = ""


def timeline(life: Life) -> list[Moment]:
    """What has happened, in order of time."""
    moments = [*_of_rows(life.rows), *_of_inbox(life), *_of_letters(life.letters)]
    return sorted(moments, key=lambda moment: moment.at)


def _of_rows(rows: Sequence[Row]) -> Iterator[Moment]:
    for row in rows:
        about = f"{row.event_type} of {row.aggregate_type}/{row.aggregate_id}"
        yield Moment(row.occurred_at, f"inserted into the outbox as {row.seq}", about)
        if row.published_at is not None:
            yield Moment(row.published_at, "published: every destination has accepted it")
        elif row.dead_at is not None:
            ended = "discarded" if row.next_attempt_at == FOREVER else "given up by the relay"
            yield Moment(row.dead_at, ended, row.last_error or "")


def _of_inbox(life: Life) -> Iterator[Moment]:
    for mark in life.marks:
        yield Moment(mark.processed_at, f"handler {mark.handler} is done")
    for failure in life.failures:
        times = "1 attempt" if failure.attempts == 1 else f"{failure.attempts} attempts"
        ended = "gave it up" if failure.dead_at is not None else "failed last"
        when = failure.last_failed_at if failure.dead_at is None else failure.dead_at
        what = f"handler {failure.handler} {ended}, {times} with message {failure.message_id}"
        yield Moment(when, what, failure.last_error or "")
    for each in life.suspected:
        alone = f", {each.crashes_alone} x alone" if each.crashes_alone else ""
        what = f"a process of {each.queue} died with its message {each.message_id} in work{alone}"
        yield Moment(each.last_crash_at, what, each.reason)


def _of_letters(letters: Sequence[DeadLetterFound]) -> Iterator[Moment]:
    for letter in letters:
        what = f"dead letter {letter.message_id} in {letter.dead_letter_queue}: {letter.reason}"
        yield Moment(letter.sent_at, what, letter.error)
