"""Whether a dead letter's event was processed already: what the inbox remembers, if it is there."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from outboxd.cli.dlq_work import complain
from outboxd.core.errors import OutboxdError

if TYPE_CHECKING:
    from outboxd.adapters.postgres.processed import Processed
    from outboxd.core.redrive import Entry
    from outboxd.core.settings import Settings

_AT_ONCE = 1000


class Standing:
    """What a redrive of one event would still bring."""

    def __init__(self, processed_by: Sequence[str], *, nothing_left: bool) -> None:
        self.processed_by = processed_by
        self.nothing_left = nothing_left
        """Whether every handler that the queue has for such an event is done with it."""


class Inbox:
    """Asks for the marks of the handlers of one queue; what it cannot ask it says once."""

    def __init__(self, settings: "Settings", queue: str, processed: "Processed | None") -> None:
        from outboxd.core.handler_table import HandlerTable

        self._handlers = HandlerTable(settings.queues[queue].handlers)
        self._names = frozenset(h.name for h in settings.queues[queue].handlers)
        self._processed = processed
        self.unasked: str | None = None if processed else "there is no [database] to ask"

        self.silent = False

    @property
    def answers(self) -> bool:
        """Whether it could be asked so far."""
        return self._processed is not None

    def fall_silent(self, why: str) -> None:
        """It is there, and does not answer."""
        self._processed, self.unasked, self.silent = None, why, True

    def standings(self, entries: "Sequence[Entry]") -> "dict[str, Standing]":
        """By the letters' message ids; only letters of which something is known."""
        marks = self._marks(sorted({e.facts.event_id for e in entries if e.facts.event_id}))
        found: dict[str, Standing] = {}
        for entry in entries:
            done = marks.get(entry.facts.event_id or "", set()) & self._names
            if done:
                wanted = self._handlers.find(entry.facts.event_type or "")
                # Without an inbox a handler runs again, whatever an older configuration marked.
                nothing_left = bool(wanted) and all(
                    each.name in done and each.inbox != "off" for each in wanted
                )
                found[entry.message.message_id] = Standing(sorted(done), nothing_left=nothing_left)
        return found

    def _marks(self, event_ids: Sequence[str]) -> dict[str, set[str]]:
        marks: dict[str, set[str]] = {}
        for start in range(0, len(event_ids), _AT_ONCE):
            if self._processed is None:
                break
            try:
                rows = self._processed.marks(event_ids[start : start + _AT_ONCE])
            except OutboxdError as error:
                self.fall_silent(str(error))
                break
            for event_id, handler in rows:
                marks.setdefault(event_id, set()).add(handler)
        return marks


@contextmanager
def inbox_of(settings: "Settings", queue: str) -> Iterator[Inbox]:
    """The inbox while the block lasts. Without a database, or without one that answers, it knows
    nothing: dead letters can be worked on all the same."""
    with ExitStack() as stack:
        processed = None
        refusal = None
        if settings.database is not None:
            from outboxd.adapters.conninfo import database_of
            from outboxd.adapters.postgres.asking import asking
            from outboxd.adapters.postgres.processed import Processed

            try:
                processed = Processed(
                    stack.enter_context(asking(database_of(settings), "outboxd dlq"))
                )
            except OutboxdError as error:
                refusal = str(error)
        inbox = Inbox(settings, queue, processed)
        if refusal is not None:
            inbox.fall_silent(refusal)
        yield inbox


def tell_unasked(inbox: Inbox) -> None:
    """That the inbox did not answer; where there is none, nobody misses it."""
    if inbox.silent:
        complain(f"which events were processed already is not known: {inbox.unasked}")
