"""Writes down what destinations said: in batches, and for as long as it takes."""

import logging
from collections.abc import Sequence
from uuid import UUID

import anyio

from outboxd.actors.relay.dispatch import Dispatch
from outboxd.actors.relay.ledger import Ledger, Trouble
from outboxd.actors.relay.persistence import Persistence
from outboxd.actors.relay.surroundings import Surroundings
from outboxd.core.errors import Unavailable
from outboxd.pacing import pause
from outboxd.ports.outbox import MarkRefused, Outbox
from outboxd.ports.relay_observer import Stage

log = logging.getLogger(__name__)

BATCH_ROWS = 500
BATCH_SECONDS = 0.02
"""How long marks are collected; a crash repeats what they hold, so no longer."""

STUCK_SECONDS = 30.0
"""How often a row that the database refused to mark is tried again."""


class Settling:
    """The only writer of marks; never in the way of publishing."""

    def __init__(
        self,
        outbox: Outbox,
        relay: UUID,
        ledger: Ledger,
        dispatch: Dispatch,
        around: Surroundings,
    ) -> None:
        self._outbox = outbox
        self._relay = relay
        self._ledger = ledger
        self._dispatch = dispatch
        self._observer, self._clock, _ = around
        self._persistence = Persistence("mark", around)
        self._hurry = anyio.Event()
        self._settled = anyio.Event()
        self._stuck_at = 0.0

    def hurry(self) -> None:
        """Collect no longer: this is a drain."""
        self._hurry.set()

    async def run(self) -> None:
        """Write whatever the ledger holds, until cancelled."""
        while True:
            await self._something_to_write()
            if self._ledger.unsettled < BATCH_ROWS:
                await pause(self._hurry, BATCH_SECONDS)
            try:
                await self.settle()
            except Unavailable as error:
                await anyio.sleep(self._persistence.failed(error))
            else:
                self._persistence.worked()
                self._settled.set()

    async def flushed(self) -> None:
        """Hurry, and wait until the ledger is empty."""
        self._hurry.set()
        while not self._ledger.empty:
            self._settled = anyio.Event()
            await self._settled.wait()

    async def settle(self) -> None:
        """Write one batch of each kind. Raises Unavailable; nothing is forgotten then."""
        started = self._clock()
        if seqs := self._ledger.published(BATCH_ROWS):
            await self._mark_published(seqs)
            self._observer.took(Stage.MARK, self._clock() - started)
            self._dispatch.pump()
        if troubles := self._ledger.troubles(BATCH_ROWS):
            await self._write(troubles)
        if self._clock() >= self._stuck_at:
            self._stuck_at = self._clock() + STUCK_SECONDS
            self._ledger.unstick_troubles()
            for seq in self._ledger.stuck():
                await self._mark_published([seq])

    async def _something_to_write(self) -> None:
        if self._ledger.empty:
            self._ledger.written_on = anyio.Event()
            with anyio.move_on_after(STUCK_SECONDS):
                await self._ledger.written_on.wait()

    async def _mark_published(self, seqs: Sequence[int]) -> None:
        try:
            pending = await self._outbox.mark_published(seqs)
        except MarkRefused as error:
            await self._bisect(seqs, error)
            return
        for seq in seqs:
            if seq not in pending:
                self._dispatch.settled(seq)
        if pending:
            # Something undoes our update. To forget these rows would publish them for ever.
            self._observer.mismatched(len(pending))
            log.error("rows stay pending although marked", extra={"seqs": sorted(pending)})
            for seq in pending:
                self._ledger.stick(seq)

    async def _bisect(self, seqs: Sequence[int], error: MarkRefused) -> None:
        """Find the row that makes its whole batch fail, and keep it apart."""
        if len(seqs) == 1:
            log.error("row cannot be marked", extra={"seq": seqs[0], "error": str(error)})
            self._ledger.stick(seqs[0])
            return
        middle = len(seqs) // 2
        await self._mark_published(seqs[:middle])
        await self._mark_published(seqs[middle:])

    async def _write(self, troubles: Sequence[tuple[int, Trouble]]) -> None:
        try:
            if delivered := [each.delivered for _, each in troubles if each.delivered]:
                await self._outbox.mark_delivered(delivered)
            if failures := [each.failure for _, each in troubles if each.failure]:
                await self._outbox.mark_failed(self._relay, failures)
        except MarkRefused as error:
            if len(troubles) > 1:
                middle = len(troubles) // 2
                await self._write(troubles[:middle])
                await self._write(troubles[middle:])
                return
            log.error("row cannot be marked", extra={"seq": troubles[0][0], "error": str(error)})
            self._ledger.stick_trouble(troubles[0][0])
            return
        for seq, trouble in troubles:
            self._dispatch.written(seq, trouble)
