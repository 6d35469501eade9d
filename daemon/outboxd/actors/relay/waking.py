"""Lets an idle relay sleep long, until a producer wakes it. The clock stays the truth."""

import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias, assert_never
from uuid import UUID

import anyio
import msgspec

from outboxd.actors.relay.surroundings import Surroundings
from outboxd.core.errors import OutageKind, Unavailable
from outboxd.core.retry import Backoff
from outboxd.core.settings import RelaySettings
from outboxd.pacing import pause
from outboxd.ports.wake_ups import WakeUps

log = logging.getLogger(__name__)

IDLE_SECONDS = 0.1
"""A relay lies down once the delay between its reads has grown to this: nothing for 0.14 s."""

AWAKE_SECONDS = 1.0
"""The least between being woken and lying down again. Each time leaves a dead row in the table that
producers look at, and vacuum cannot remove it while some transaction of the database is old."""

ONE_MORE_LOOK_SECONDS = 0.1

ANSWER_SECONDS = 1.0
"""So long a read waits for our statements, and then goes on without them."""

RESTING_SECONDS = 5.0
"""After one that failed, until the next."""

HEARTBEAT_SECONDS = 10.0
ECHO_SECONDS = 5.0
"""A connection that is broken without a word is found after both together."""

_RETRIES = Backoff(first_seconds=1.0, cap_seconds=30.0, jitter=0.5)


class Awake(msgspec.Struct, frozen=True):
    """Producers do not know of us."""


class LyingDown(msgspec.Struct, frozen=True):
    """Producers are told; those in a transaction below `first_to_know` may not have noticed. None
    while the answer is awaited, and for good if it fails: then they may or may not be told."""

    first_to_know: int | None
    looks: int = 0


class LastLook(msgspec.Struct, frozen=True):
    """Whoever may not have noticed has ended: the read that begins now finds what it left."""


class Asleep(msgspec.Struct, frozen=True):
    """Whatever is committed wakes us."""


Sleep: TypeAlias = Awake | LyingDown | LastLook | Asleep


class Waking:
    """An event that is committed while the relay sleeps is read at once; one whose producer did not
    know of the sleep is read before it begins. Without the listener reads go on as if there were no
    wake-ups.

    A producer looks for sleepers when it inserts, not when it commits. So the sleep begins only
    once every transaction has ended that may have looked too early; until then reads go on by the
    clock. One more read after a fixed time alone would find a producer that commits within it, and
    leave one that takes longer waiting for the whole sleep.
    """

    def __init__(
        self,
        wake_ups: WakeUps,
        relay: UUID,
        settings: RelaySettings,
        read_now: Callable[[], None],
        around: Surroundings,
    ) -> None:
        """`read_now` makes the reader read at once, and often for a while."""
        self._wake_ups = wake_ups
        self._relay = relay
        self._idle_seconds = min(IDLE_SECONDS, settings.poll_max_seconds)
        self._sleep_seconds = settings.sleep_max_seconds
        self._read_now = read_now
        self._observer, self._clock, self._dice = around
        self._sleep: Sleep = Awake()
        self._turn = anyio.Lock()
        self._listening = False
        self._woken = False
        self._echo = anyio.Event()
        self._not_before = 0.0
        self._resting_until = 0.0
        self._failures = 0
        self._stopping = anyio.Event()

    def stop(self) -> None:
        """Do not lie down any more."""
        self._stopping.set()

    async def run(self) -> None:
        """Listen until stopped, however often the connection is lost."""
        while not self._stopping.is_set():
            error = await _first_failure(self._listen, self._prove, self._stopping.wait)
            if error is not None:
                # What was sent while nobody listened is not sent again.
                self._read_now()
                await pause(self._stopping, self._failed(error))

    async def after_read(self, delay: float, *, quiet: bool) -> float:
        """How long to wait for the next read, which without us would begin after `delay`; `quiet`
        says that the last one found nothing in any of our buckets, and that nothing is under way.
        """
        if self._clock() < self._resting_until:
            return delay
        try:
            with anyio.fail_after(ANSWER_SECONDS):
                async with self._turn:
                    return await self._next(delay, quiet)
        except (Unavailable, TimeoutError):
            # Reads are the truth and may well work: they must not wait for what only shortens them.
            self._observer.database_failed("sleep")
            self._resting_until = self._clock() + RESTING_SECONDS
            return delay

    async def get_up(self) -> None:
        """For the end: be known as awake; if that fails, producers forget the sleep by
        themselves."""
        self.stop()
        await self.after_read(0.0, quiet=False)

    async def _next(self, delay: float, quiet: bool) -> float:
        undecided = self._sleep == LyingDown(None)
        if self._woken or undecided or not (quiet and self._listening) or self._stopping.is_set():
            await self._rise()
            return delay
        return await self._settle_down(delay)

    async def _rise(self) -> None:
        if isinstance(self._sleep, Awake):
            return
        # After the read that the wake-up was for, and not before it: the event has waited longer.
        await self._wake_ups.withdraw(self._relay)
        self._sleep = Awake()
        self._woken = False
        self._not_before = self._clock() + AWAKE_SECONDS

    async def _settle_down(self, delay: float) -> float:
        """One step nearer to sleep."""
        match self._sleep:
            case Awake():
                if delay < self._idle_seconds or self._clock() < self._not_before:
                    return delay
                self._echo = anyio.Event()
                self._sleep = LyingDown(None)
                self._sleep = LyingDown(await self._wake_ups.declare(self._relay))
                return 0.0
            case LyingDown(looks=0):
                self._sleep = msgspec.structs.replace(self._sleep, looks=1)
                return min(delay, ONE_MORE_LOOK_SECONDS)
            case LyingDown(first_to_know=first_to_know):
                if first_to_know is None or await self._wake_ups.oldest_open() < first_to_know:
                    return delay
                self._sleep = LastLook()
                return 0.0
            case LastLook():
                if not self._echo.is_set():
                    return delay
                self._heard_ourselves()
                self._sleep = Asleep()
                return self._sleep_seconds
            case Asleep():
                return self._sleep_seconds
            case _:
                assert_never(self._sleep)

    async def _listen(self) -> None:
        try:
            async with self._wake_ups.listening() as notifications:
                self._listening = True
                # Listening first: what is committed before we read is found by one of both.
                self._read_now()
                async for sender in notifications:
                    self._heard(sender)
        finally:
            self._listening = False

    def _heard(self, sender: str) -> None:
        if sender == str(self._relay):
            self._echo.set()
        elif sender == "" and not self._woken and not isinstance(self._sleep, Awake):
            self._woken = True
            self._observer.woken()
            self._read_now()

    async def _prove(self) -> None:
        """As long as we are known as asleep, hear our own notification again and again."""
        while True:
            await anyio.sleep(HEARTBEAT_SECONDS)
            async with self._turn:
                if isinstance(self._sleep, Awake) or self._woken:
                    continue
                self._echo = anyio.Event()
                if not await self._wake_ups.renew(self._relay):
                    raise Unavailable(
                        "producers had lost sight of this relay, or do not notify any more",
                        OutageKind.MISSING,
                    )
            with anyio.move_on_after(ECHO_SECONDS) as waiting:
                await self._echo.wait()
            if waiting.cancelled_caught:
                raise Unavailable(
                    f"no notification arrived within {ECHO_SECONDS:g} s; LISTEN needs a connection "
                    "without a transaction pooler: see [database] direct_url",
                    OutageKind.TIMEOUT,
                )

    def _failed(self, error: Unavailable) -> float:
        self._failures += 1
        self._observer.database_failed("listen")
        if self._failures == 1:
            log.warning(
                "wake-ups unavailable, reading by the clock",
                extra={"kind": error.kind, "error": str(error)},
            )
        return _RETRIES.delay(self._failures, self._dice)

    def _heard_ourselves(self) -> None:
        if self._failures:
            log.info("wake-ups available again", extra={"failures": self._failures})
        self._failures = 0


async def _first_failure(*loops: Callable[[], Awaitable[object]]) -> Unavailable | None:
    """Run loops until one of them ends, or fails; that ends the others."""
    failures: list[Unavailable] = []

    async def watched(loop: Callable[[], Awaitable[object]]) -> None:
        try:
            await loop()
        except Unavailable as error:
            failures.append(error)
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        for loop in loops:
            tasks.start_soon(watched, loop)
    return failures[0] if failures else None
