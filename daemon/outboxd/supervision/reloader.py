"""Remembers that somebody wants a reload, and makes one at a time."""

import logging

import anyio

from outboxd.supervision.crew import Crew
from outboxd.supervision.observing import ReloadResult, SupervisorObserver
from outboxd.supervision.reloading import ABORTED, Outcome, Reload, Source
from outboxd.supervision.requests import Request
from outboxd.supervision.sd_notify import Notifier

log = logging.getLogger(__name__)


class ReloadRequest(Request[Outcome]):
    """A reload that was asked for."""

    everything = False


class Reloader:
    """Carries requests out one after another.

    Those that come during a reload are one: it begins when that one has ended, and so reads what
    the file holds by then.
    """

    def __init__(
        self,
        crew: Crew,
        source: Source,
        observer: SupervisorObserver,
        notifier: Notifier,
        turn: anyio.Lock,
    ) -> None:
        self._crew = crew
        self._source = source
        self._observer = observer
        self._notifier = notifier
        self._turn = turn
        self._waiting: ReloadRequest | None = None
        self._open: set[ReloadRequest] = set()
        self._asked = anyio.Event()
        self.busy = False

    def ask(self, *, everything: bool = False) -> ReloadRequest:
        """Have the configuration read anew; `everything` restarts all children."""
        if self._waiting is None:
            self._waiting = ReloadRequest()
            self._open.add(self._waiting)
        if self._crew.stopping:
            self._waiting.conclude(ABORTED)
        self._waiting.everything |= everything
        self._asked.set()
        return self._waiting

    def abort(self) -> None:
        """The daemon stops, and that is the answer at once: what a reload waits for may take as
        long as the daemon lives."""
        for request in self._open:
            request.conclude(ABORTED)

    async def run(self, started: anyio.Event) -> None:
        """Carry requests out, the first one when the start is over, until the daemon stops."""
        await started.wait()
        while True:
            await self._asked.wait()
            self._asked = anyio.Event()
            request, self._waiting = self._waiting, None
            if request is not None:
                request.conclude(await self._carry_out(request.everything))
                self._open.discard(request)

    async def _carry_out(self, everything: bool) -> Outcome:
        if self._crew.stopping:
            return ABORTED
        self.busy = True
        self._notifier.reloading()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._notifier.extend_timeout, lambda: self.busy)
            outcome = await self._outcome(everything)
            self.busy = False
            tasks.cancel_scope.cancel()
        self._observer.reloaded(outcome.result)
        if outcome.result is ReloadResult.OK:
            log.info("configuration reloaded", extra={"outcome": outcome.text})
        else:
            log.error(
                "configuration not reloaded",
                extra={"result": outcome.result.value, "outcome": outcome.text},
            )
        # In every outcome, or systemd waits for ever; but not after it was told STOPPING.
        if not self._crew.stopping:
            self._notifier.ready(outcome.text)
        return outcome

    async def _outcome(self, everything: bool) -> Outcome:
        try:
            return await Reload(self._crew, self._source, everything=everything).run(self._turn)
        # The fence around the supervisor: a bug here costs a reload, not the daemon.
        except Exception:
            log.exception("reload not carried out; this is a bug in outboxd")
            return Outcome(ReloadResult.INVALID, "a bug in outboxd; its log tells more")
