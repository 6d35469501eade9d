"""Lets the inbox forget what can no longer come back, in small steps."""

import logging
from collections.abc import Callable

import anyio

from outboxd.core.clock import boottime
from outboxd.core.errors import OutageKind, Unavailable
from outboxd.core.inbox_retention import Slices, kept_seconds, purge_before
from outboxd.core.retry import Dice
from outboxd.core.settings import InboxSettings
from outboxd.pacing import pause
from outboxd.ports.inbox_upkeep import InboxObserver, InboxUpkeep, Kept, QueueLife

log = logging.getLogger(__name__)

BEAT_SECONDS = 30.0
"""How often a poll is written down; well below what counts as an outage."""

FIRST_BEAT_SECONDS = 2.0
"""How soon after the start the first one is, so that a pool that seldom lives long is seen too."""

POLLED_WITHIN_SECONDS = 60.0
"""A receive that was answered so recently means that the queue is polled: three long polls."""

ROUND_SECONDS = 600.0
ASK_AGAIN_SECONDS = 3_600.0
ROWS_PER_STEP = 5_000
BETWEEN_STEPS_SECONDS = 0.1

SECONDS_PER_DAY = 86_400.0

SUSPECTS_KEPT_SECONDS = 15 * SECONDS_PER_DAY
"""SQS keeps no message longer than 14 days, so what is older stands against a message that is gone;
one that was in a dead-letter queue comes back as another message."""


_NOT_CLEANED = "inbox not cleaned up"
_LIFE_UNKNOWN = "retention of the queue unknown"

_OUTAGES = frozenset(
    {
        OutageKind.UNREACHABLE,
        OutageKind.THROTTLED,
        OutageKind.TIMEOUT,
        OutageKind.SERVER_FAULT,
        OutageKind.CREDENTIALS,
    }
)


class InboxJanitor:
    """Deletes no mark whose event may still be delivered.

    It lives in the consumer pools, and not in the relay, because only they know whether their queue
    is polled: a relay that went by the clock would purge the marks of a queue that stands still.
    Every pool may work; a lock in the database lets one at a time.
    """

    def __init__(
        self,
        queue: str,
        settings: InboxSettings,
        *,
        upkeep: InboxUpkeep,
        life: QueueLife,
        last_receive_at: Callable[[], float | None],
        observer: InboxObserver,
        dice: Dice,
        clock: Callable[[], float] = boottime,
    ) -> None:
        """`queue` is the name in the configuration; `last_receive_at` is by `clock`."""
        self._queue = queue
        self._settings = settings
        self._upkeep = upkeep
        self._life = life
        self._last_receive_at = last_receive_at
        self._observer = observer
        self._dice = dice
        self._clock = clock
        self._never = anyio.Event()
        self._seen = False
        self._lasting: float | None = None
        self._ask_at = 0.0
        self._purged_until = 0.0
        self._told_kept = 0.0
        self._told_failing: set[str] = set()

    async def run(self) -> None:
        """Write down polls and clean up, until cancelled; a statement that is cut short is one that
        was not made."""
        # Not at once: pools that start together would all begin with the same round.
        round_at = self._clock() + ROUND_SECONDS * self._dice()
        wait = FIRST_BEAT_SECONDS
        while True:
            await pause(self._never, wait)
            try:
                if await self.beat():
                    wait = BEAT_SECONDS
                if self._clock() >= round_at:
                    await self.clean()
                    self._told_failing.discard(_NOT_CLEANED)
                    round_at = self._clock() + ROUND_SECONDS
            except Unavailable as error:
                self._failed(_NOT_CLEANED, error)

    async def beat(self) -> bool:
        """Write down that the queue is polled, if it is. Raises Unavailable."""
        received = self._last_receive_at()
        if received is None or self._clock() - received > POLLED_WITHIN_SECONDS:
            return False
        await self._ask_how_long_messages_last()
        await self._upkeep.polled(self._queue, self._lasting)
        self._seen = True
        return True

    async def clean(self) -> None:
        """One round over everything that is old enough. Raises Unavailable."""
        # By the clock alone: SQS deletes a message in time, also of a queue that nobody polls.
        await self._purge_suspects()
        if not self._seen:
            return  # what nobody is known to poll has no time that could count
        if self._lasting is None and not self._settings.allow_shorter_retention:
            return  # nobody knows yet how long messages of this queue may come back
        known = await self._upkeep.polls()
        kept = kept_seconds(
            self._settings.retention_days * SECONDS_PER_DAY,
            known.polls,
            shorter_allowed=self._settings.allow_shorter_retention,
        )
        before = purge_before(known.now, kept, known.polls)
        self._observer.kept(known.now - before)
        self._tell_when_longer(kept)
        await self._purge_marks(before)
        await self._purge_failures(before)
        await self._upkeep.forget_gaps(before)

    async def _ask_how_long_messages_last(self) -> None:
        if self._clock() < self._ask_at:
            return
        try:
            self._lasting = await self._life.lasting_seconds()
            self._ask_at = self._clock() + ASK_AGAIN_SECONDS
        except Unavailable as error:
            # What was known stays; what never was keeps this pool from purging.
            self._failed(_LIFE_UNKNOWN, error)
        else:
            self._told_failing.discard(_LIFE_UNKNOWN)

    def _failed(self, what: str, error: Unavailable) -> None:
        """The next beat tries again. The pool itself notices an outage; what else there is nobody
        would hear of, and is told once until it works again."""
        self._observer.failed()
        told = error.kind in _OUTAGES or what in self._told_failing
        if not told:
            self._told_failing.add(what)
        log.log(
            logging.DEBUG if told else logging.WARNING,
            what,
            extra={"queue": self._queue, "kind": error.kind.value, "error": str(error)},
        )

    async def _purge_marks(self, before: float) -> None:
        slices = Slices(self._purged_until, before)
        while not slices.finished:
            since, until = slices.current
            deleted = await self._upkeep.purge_marks(since, until, ROWS_PER_STEP)
            if deleted is None:  # somebody else is at it
                return
            slices.took(deleted, ROWS_PER_STEP)
            if deleted:
                self._observer.purged(Kept.MARKS, deleted)
                await pause(self._never, BETWEEN_STEPS_SECONDS)
        self._purged_until = max(self._purged_until, before)

    async def _purge_failures(self, before: float) -> None:
        while deleted := await self._upkeep.purge_failures(before, ROWS_PER_STEP):
            self._observer.purged(Kept.FAILURES, deleted)
            await pause(self._never, BETWEEN_STEPS_SECONDS)

    async def _purge_suspects(self) -> None:
        while deleted := await self._upkeep.purge_suspects(SUSPECTS_KEPT_SECONDS, ROWS_PER_STEP):
            self._observer.purged(Kept.SUSPECTS, deleted)
            await pause(self._never, BETWEEN_STEPS_SECONDS)

    def _tell_when_longer(self, kept: float) -> None:
        """Once for each length: a queue in SQS keeps messages for longer than was configured."""
        configured = self._settings.retention_days * SECONDS_PER_DAY
        if kept > configured and kept != self._told_kept:
            self._told_kept = kept
            log.warning(
                "a queue keeps messages for longer than the inbox; marks are kept as long",
                extra={
                    "configured_days": self._settings.retention_days,
                    "kept_days": kept / SECONDS_PER_DAY,
                },
            )
