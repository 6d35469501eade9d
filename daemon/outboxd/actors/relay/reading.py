"""Reads pending events of our buckets, as often as it pays."""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

import anyio

from outboxd.actors.relay.dispatch import Dispatch
from outboxd.actors.relay.persistence import Persistence
from outboxd.actors.relay.scan import Look, Scan
from outboxd.actors.relay.surroundings import Memory, Surroundings
from outboxd.actors.relay.waking import Waking
from outboxd.core.errors import Unavailable
from outboxd.core.outbox import StoredEvent
from outboxd.core.settings import RelaySettings
from outboxd.core.windows import SLOW_SECONDS
from outboxd.pacing import pause
from outboxd.ports.outbox import Outbox, ReadCutOff
from outboxd.ports.progress import Progress
from outboxd.ports.relay_observer import Stage

log = logging.getLogger(__name__)

EVENTS_IN_MEMORY = 2_000
PAYLOADS_IN_MEMORY = 64 * 1024 * 1024
"""Characters. Beyond either, reading waits for sending."""

LARGEST_PAGE = 10_240
"""Rows of all buckets together. Four times as many took more than the five seconds that a statement
may take."""


class Reading:
    """Claims nothing: whoever owns the bucket may take what is pending in it."""

    def __init__(
        self,
        outbox: Outbox,
        settings: RelaySettings,
        memory: Memory,
        dispatch: Dispatch,
        sending_seconds: float,
        progress: Progress,
        around: Surroundings,
        waking: Waking | None = None,
    ) -> None:
        """`sending_seconds` is the longest call of any destination."""
        self._outbox = outbox
        self._settings = settings
        self._holdings, self._chains, self._ledger = memory
        self._dispatch = dispatch
        self._sending_seconds = sending_seconds
        self._progress = progress
        self._observer, self._clock, _ = around
        self._persistence = Persistence("read", around)
        self._delay = settings.poll_min_seconds
        self._per_bucket = settings.read_per_bucket
        self._took = 0.0
        self._waking = waking
        self._quiet = False
        self._scan = Scan(memory, around)
        self._again = anyio.Event()
        self._stopped = False

    def wake(self) -> None:
        """There may be something to read at once, and more to come."""
        self._delay = self._settings.poll_min_seconds
        self._again.set()

    def again(self) -> None:
        """There may be something to read at once."""
        self._again.set()

    def stop(self) -> None:
        """Take up nothing new; a read that is under way ends by itself."""
        self._stopped = True
        self._again.set()

    async def run(self, issued: Callable[[], Awaitable[None]]) -> None:
        """Read until stopped; `issued` is called when the first read is about to start."""
        await issued()
        while not self._stopped:
            self._again = anyio.Event()
            delay = await self._read_or_wait()
            if self._waking is not None:
                delay = await self._waking.after_read(delay, quiet=self._quiet)
            until_expiry = self._chains.next_expiry - self._clock()
            await pause(self._again, max(0.0, min(delay, until_expiry)))
        if self._waking is not None:
            await self._waking.get_up()

    async def read(self) -> bool:
        """Read one page of each bucket and start it; returns whether there may well be more.
        Raises Unavailable, or ReadCutOff."""
        await self._scan.sample(self._outbox)
        now = self._clock()
        self._chains.expire(now)
        ours = self._holdings.readable(now, self._sending_seconds)
        look = self._scan.plan(ours)
        if look is None:
            return False
        # What is in hand is named before the read, and left out by it: the answer of a read may
        # come after the settlement of a row that it saw pending.
        try:
            page = await self._outbox.read(
                look.windows,
                self._per_bucket,
                self._chains.excluded_keys(),
                self._ledger.unsettled_seqs() + self._chains.excluded_seqs(),
            )
        except ReadCutOff:
            self._cut_off(look)
            raise
        self._told(look)
        unseen = self._scan.read(look, page, len(ours))
        # A bucket that was lost meanwhile, even if it was won back, is not of this read.
        asked = {holding.bucket: holding for holding in look.holdings}
        more = self._take_up(
            [each for each in page if self._holdings.get(each.bucket) is asked[each.bucket]]
        )
        whole = len(look.holdings) == len(self._holdings) and not any(
            window.ends for window in look.windows.values()
        )
        self._quiet = whole and not (page or unseen or self._chains.moving)
        return more or unseen

    def _told(self, look: Look) -> None:
        now = self._clock()
        self._took = now - look.began_at
        self._observer.took(Stage.READ, self._took)
        self._progress.last_receive_at = now

    def _cut_off(self, look: Look) -> None:
        """Less of everything: fewer buckets, smaller windows and pages."""
        self._told(look)
        self._scan.cut_off(look)
        self._per_bucket = self._settings.read_per_bucket
        self._observer.database_failed("read")
        log.warning(
            "read cut off by the time limit of statements",
            extra={"buckets": len(look.holdings), "seconds": round(self._took, 1)},
        )

    def _take_up(self, page: Sequence[StoredEvent]) -> bool:
        """Start a page; returns whether the next read will find more, and chooses its size."""
        sent_before = self._chains.moving + self._ledger.unsettled
        parked_before = self._chains.parked
        self._dispatch.take_up(page)
        parked = self._chains.parked - parked_before
        moved = self._chains.moving + self._ledger.unsettled - sent_before + parked > 0
        more = moved and _some_bucket_full(page, self._per_bucket)
        most = self._settings.read_per_bucket
        if more and (2 * parked > len(page) or self._took > SLOW_SECONDS):
            # A backlog of which little can be sent is walked in growing steps: each read has to
            # pass over all that the ones before have found.
            largest = LARGEST_PAGE // max(1, len(self._holdings))
            most = max(most, min(2 * self._per_bucket, largest))
        self._per_bucket = most
        return more

    async def _read_or_wait(self) -> float:
        """Returns how long to wait before the next read."""
        self._quiet = False
        if self._memory_full:
            return self._settings.poll_min_seconds
        try:
            more = await self.read()
        except ReadCutOff:
            return self._settings.poll_max_seconds
        except Unavailable as error:
            self._scan.forget()
            self._per_bucket = self._settings.read_per_bucket
            return self._persistence.failed(error)
        self._persistence.worked()
        return 0.0 if more else self._idle_delay()

    @property
    def _memory_full(self) -> bool:
        return (
            self._chains.events >= EVENTS_IN_MEMORY
            or self._chains.payload_length >= PAYLOADS_IN_MEMORY
        )

    def _idle_delay(self) -> float:
        """The longer nothing happens, the longer; a lane that moves may have more to read as soon
        as it rests. Not less than the last read took: one that has to pass over a long
        backlog, as during a destination's outage, must not be all that the database does."""
        settings = self._settings
        busy = self._chains.moving > 0
        grown = settings.poll_min_seconds if busy else self._delay * 2
        self._delay = min(grown, settings.poll_max_seconds)
        # Bounded, since a read seems to have taken hours when the host slept meanwhile.
        return max(self._delay, min(self._took, settings.poll_max_seconds))


def _some_bucket_full(page: Sequence[StoredEvent], per_bucket: int) -> bool:
    if len(page) < per_bucket:
        return False
    return max(Counter(event.bucket for event in page).values()) >= per_bucket
