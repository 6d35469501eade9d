"""One call of a handler, with everything around it that the daemon would see to."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from anyio import to_thread

from outboxd.adapters.handlers.calling import call_async, call_sync
from outboxd.adapters.handlers.invocation import (
    Invocation,
    event_of,
    invocation_of_many,
    invocation_of_one,
)
from outboxd.adapters.handlers.own import judged_by_mark
from outboxd.adapters.handlers.publishing import Publish
from outboxd.adapters.postgres.claims import Claiming, Claims, ClaimState
from outboxd.adapters.postgres.marks import Mark
from outboxd.core.clock import boottime
from outboxd.core.envelopes import Malformed, open_envelope
from outboxd.core.events import Event
from outboxd.core.judging import Ending, Patience, Returned, clean, judge, spent
from outboxd.core.outcomes import DeadLetter, DeadReason, Done, Outcome
from outboxd.core.retry import Backoff
from outboxd.core.settings import InboxMode
from outboxd.ports.handling import Call
from outboxd.producer import publish
from outboxd.testing.given import QUEUE, Given, body, listed, loaded, message
from outboxd.testing.transactions import check_tx, within, within_async


class Trial:
    """The `attempt`-th call of this handler with this event, or with these events as one batch.
    Raises as `handling.run` does."""

    def __init__(
        self,
        handler: Callable[..., Any],
        given: Given | Sequence[Given],
        tx: Any,
        options: Mapping[str, Any] | None,
        attempt: int,
        max_attempts: int,
        timeout_seconds: float,
        name: str | None,
        schema: str,
        inbox: InboxMode,
    ) -> None:
        events, batch = listed(given)
        self._handler = loaded(handler, options, timeout_seconds, name, inbox, batch)
        check_tx(self._handler, tx, inbox)
        self._tx = tx
        self._publish: Publish | None = None if tx is None else partial(publish, schema=schema)
        self._bodies = [body(event) for event in events]
        self._claims = Claims(schema) if inbox == "own" else None
        self._attempt = attempt
        self._patience = Patience(max_attempts, Backoff())

    @property
    def asynchronous(self) -> bool:
        return self._handler.signature.asynchronous

    def run(self) -> Outcome:
        """Call a synchronous handler, in this thread."""
        prepared = self._prepared()
        if not isinstance(prepared, Prepared):
            return self._judged(prepared)
        ending = within(
            self._tx,
            self._handler.name,
            lambda: call_sync(prepared.invocation, self._publish, self._tx),
        )
        return self._judged(prepared.claimed(ending))

    async def run_async(self) -> Outcome:
        """Call any handler, a synchronous one in a thread."""
        if not self.asynchronous:
            return await to_thread.run_sync(self.run)
        prepared = self._prepared()
        if not isinstance(prepared, Prepared):
            return self._judged(prepared)
        ending = await within_async(
            self._tx,
            self._handler.name,
            lambda: call_async(prepared.invocation, self._publish, self._tx),
        )
        return self._judged(prepared.claimed(ending))

    def _prepared(self) -> "Prepared | Ending":
        """The call that is to be made, or why none is."""
        try:
            calls = [self._call(text) for text in self._bodies]
        except Malformed as error:
            return Returned(DeadLetter(DeadReason.MALFORMED, clean(str(error))))
        events: list[Event[Any]] = []
        for call in calls:
            event = event_of(self._handler, call)
            if not isinstance(event, Event):
                return event
            events.append(event)
        if self._handler.settings.batch > 1:
            return Prepared(invocation_of_many(self._handler, calls[0], events), None)
        ((call, event),) = zip(calls, events, strict=True)
        if self._claims is None:
            return Prepared(invocation_of_one(self._handler, call, event), None)
        claiming = self._claims.claiming(Mark(event.id, self._handler.name))
        invocation = invocation_of_one(self._handler, call, event, claiming.claim)
        return Prepared(invocation, claiming)

    def _call(self, text: str) -> Call:
        deadline = boottime() + self._handler.settings.timeout_seconds
        return Call(open_envelope(message(text)), QUEUE, self._attempt, deadline)

    def _judged(self, ending: Ending) -> Outcome:
        failures = self._attempt if spent(ending) is not None else self._attempt - 1
        return judge(ending, failures, self._patience, dice=_longest).outcome


class Prepared(NamedTuple):
    """A call that can be made; `claiming` is what a handler with inbox = "own" claims with."""

    invocation: Invocation
    claiming: Claiming | None

    def claimed(self, ending: Ending) -> Ending:
        """The ending as the daemon would see it, if what was claimed is committed with a success
        and rolled back with a failure; a test's own transaction may still be open around it."""
        if self.claiming is None:
            return ending
        asked = self.claiming.state is not ClaimState.NEVER_ASKED
        done = isinstance(ending, Returned) and isinstance(ending.outcome, Done)
        return judged_by_mark(ending, self.claiming, asked and done)


def _longest() -> float:
    """No chance: a delay that a test can compare."""
    return 0.0
