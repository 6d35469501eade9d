"""The leases under extension, in the order in which something is to be done about them."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeAlias, assert_never

from outboxd.core.appointments import Appointments
from outboxd.core.lease_changes import (
    Change,
    Due,
    Limited,
    Lost,
    NothingLeft,
    Notice,
    Owner,
    Terms,
    extension_seconds,
)
from outboxd.core.recent import Recent

SHORTEST_RETRY_SECONDS = 0.1
REMEMBERED_DEAD = 4096

Key: TypeAlias = tuple[Owner, int]
"""Tokens are new for every receive, but each owner counts its own."""


class Standing(Enum):
    """What is to become of a lease."""

    HELD = "held"  # it is extended
    FORGOTTEN = "forgotten"  # a tombstone: not extended, given back if its owner dies
    RETURNING = "returning"  # its owner is dead: it is given back
    SPENT = "spent"  # no longer ours; it stays until its owner has settled it, or is dead


@dataclass(slots=True)
class _Entry(Generic[Owner]):
    owner: Owner
    lease: Terms
    deadline: float
    standing: Standing = Standing.HELD
    retry_at: float = -math.inf
    attempt: int = 0
    limited: bool = False
    presumed: bool = False

    @property
    def key(self) -> Key[Owner]:
        return self.owner, self.lease.token

    @property
    def message(self) -> tuple[str, str]:
        return self.lease.queue, self.lease.message_id

    @property
    def attention_at(self) -> float:
        """When something is to be done: half of the timeout before the deadline, a retry later."""
        match self.standing:
            case Standing.HELD if not self.limited:
                half = self.deadline - self.lease.visibility_seconds / 2
                return min(max(half, self.retry_at), self.deadline)
            case Standing.HELD | Standing.FORGOTTEN:
                return self.deadline
            case Standing.RETURNING:
                return min(self.retry_at, self.deadline)
            case Standing.SPENT:
                return math.inf
            case _:
                assert_never(self.standing)


class LeaseTable(Generic[Owner]):
    """Says what is due, and is told what came of it.

    It never asks for two changes of one receipt at once, nor for an extension of a lease that was
    forgotten or settled or whose owner is gone, and it moves a deadline only for a confirmed
    change. Times are boottime() seconds.
    """

    def __init__(self) -> None:
        self._entries: dict[Key[Owner], _Entry[Owner]] = {}
        self._tokens: dict[Owner, set[int]] = {}
        self._newest: dict[tuple[str, str], Key[Owner]] = {}
        self._appointments: dict[str, Appointments[Key[Owner]]] = {}
        self._standings: Counter[tuple[str, Standing]] = Counter()
        self._flying: set[Key[Owner]] = set()
        self._dead: Recent[Owner] = Recent(REMEMBERED_DEAD)

    @property
    def queues(self) -> tuple[str, ...]:
        """Every queue that ever had a lease."""
        return tuple(self._appointments)

    def tracked(self, queue: str) -> int:
        """How many leases of the queue are being extended."""
        return self._standings[queue, Standing.HELD]

    @property
    def idle(self) -> bool:
        """Nothing is left to extend, to remember or to give back, and no call is on its way."""
        open_ = sum(n for (_, standing), n in self._standings.items() if standing != Standing.SPENT)
        return open_ == 0 and not self._flying

    def hold(self, owner: Owner, lease: Terms, now: float) -> list[Notice[Owner]]:
        """Take a lease over; a repeated one changes nothing, one of a dead owner is refused.

        Of two receipts of one message the newer counts. That is the later receive, unless the known
        one has run out: a long poll may begin before a neighbour's and end after it.
        """
        if owner in self._dead:
            return [NothingLeft(owner, lease.token)]
        if (owner, lease.token) in self._entries:
            return []
        entry = _new_entry(owner, lease, now)
        notices: list[Notice[Owner]] = []
        rival = self._rival(entry)
        self._enter(entry)
        if rival is not None:
            if rival.lease.received_at > lease.received_at and rival.deadline > now:
                return self._spend(entry)
            notices = self._spend(rival)
        self._newest[entry.message] = entry.key
        self._make_appointment(entry)
        return notices

    def forget(self, owner: Owner, tokens: Iterable[int]) -> frozenset[Key[Owner]]:
        """Stop extending these leases. Returns those with a call on its way."""
        keys = {(owner, token) for token in tokens}
        for key in keys:
            entry = self._entries.get(key)
            if entry is not None and entry.standing is Standing.HELD:
                self._restand(entry, Standing.FORGOTTEN)
                self._make_appointment(entry)
        return frozenset(keys & self._flying)

    def knows(self, owner: Owner, token: int) -> bool:
        """Whether the owner has not settled this lease, lost or not."""
        return (owner, token) in self._entries

    def settled(self, owner: Owner, tokens: Iterable[int]) -> None:
        """The owner has deleted, hidden or released these: they are none of our business now."""
        for token in tokens:
            if (entry := self._entries.get((owner, token))) is not None:
                self._remove(entry)

    def gone(self, owner: Owner) -> list[Notice[Owner]]:
        """The owner is dead: whatever it has not settled is to be given back."""
        self._dead.add(owner)
        notices: list[Notice[Owner]] = []
        for token in sorted(self._tokens.get(owner, ())):
            entry = self._entries[owner, token]
            if entry.standing is Standing.SPENT:
                self._remove(entry)
                notices.append(NothingLeft(owner, token))
            else:
                self._restand(entry, Standing.RETURNING)
                entry.attempt, entry.retry_at = 0, -math.inf
                self._make_appointment(entry)
        return notices

    def due(self, queue: str, now: float, most: int) -> Due[Owner]:
        """Up to `most` changes to ask of SQS now; each is on its way until its result is told."""
        changes: list[Change[Owner]] = []
        notices: list[Notice[Owner]] = []
        appointments = self._appointments.get(queue, Appointments())
        while len(changes) < most and (key := appointments.take(now)) is not None:
            entry = self._entries[key]
            if entry.deadline <= now:
                notices += self._spend(entry)
            elif (seconds := self._seconds(entry, now)) is None:
                entry.limited = True
                self._make_appointment(entry)
                notices.append(Limited(queue))
            else:
                changes.append(self._send_off(entry, seconds, now))
        return Due(tuple(changes), tuple(notices))

    def next_due(self, queue: str) -> float | None:
        """When `due` will have something for the queue; None if there is nothing to wait for."""
        at = self._appointments.get(queue, Appointments()).next_at
        return None if at == math.inf else at

    def confirmed(self, change: Change[Owner], deadline: float) -> list[Notice[Owner]]:
        """SQS carried the change out; the lease ends at `deadline` now."""
        entry = self._land(change)
        if entry is None:
            return []
        if change.gives_back:
            return self._spend(entry)
        entry.deadline, entry.presumed = deadline, False
        entry.attempt, entry.retry_at = 0, -math.inf
        self._make_appointment(entry)
        return []

    def failed(self, change: Change[Owner], now: float, retry_at: float) -> None:
        """The change may or may not have been carried out: try again at `retry_at`, and in any case
        while there is time left on the lease."""
        entry = self._land(change)
        if entry is None:
            return
        entry.attempt = change.attempt
        soon = now + max(SHORTEST_RETRY_SECONDS, (entry.deadline - now) / 2)
        entry.retry_at = min(retry_at, soon)
        self._make_appointment(entry)

    def refused(self, change: Change[Owner]) -> list[Notice[Owner]]:
        """SQS says that the receipt is not ours."""
        entry = self._land(change)
        return [] if entry is None else self._spend(entry)

    def _rival(self, entry: _Entry[Owner]) -> _Entry[Owner] | None:
        key = self._newest.get(entry.message)
        return None if key is None else self._entries[key]

    def _seconds(self, entry: _Entry[Owner], now: float) -> int | None:
        if entry.standing is Standing.RETURNING:
            return 0
        known_deadline = -math.inf if entry.presumed else entry.deadline
        return extension_seconds(entry.lease, known_deadline, now)

    def _send_off(self, entry: _Entry[Owner], seconds: int, now: float) -> Change[Owner]:
        self._flying.add(entry.key)
        slack = entry.deadline - now
        lease = entry.lease
        return Change(
            entry.owner, lease.token, lease.receipt_handle, seconds, slack, entry.attempt + 1
        )

    def _land(self, change: Change[Owner]) -> _Entry[Owner] | None:
        key = (change.owner, change.token)
        self._flying.discard(key)
        entry = self._entries.get(key)
        return None if entry is None or entry.standing is Standing.SPENT else entry

    def _spend(self, entry: _Entry[Owner]) -> list[Notice[Owner]]:
        """The lease is no longer ours, or needs to be ours no longer."""
        lease = entry.lease
        before = entry.standing
        if before is Standing.RETURNING:
            self._remove(entry)
            return [NothingLeft(entry.owner, lease.token)]
        self._restand(entry, Standing.SPENT)
        self._yield_message(entry)
        if before is Standing.HELD:
            return [Lost(entry.owner, lease.token, lease.queue, lease.message_id)]
        return []

    def _enter(self, entry: _Entry[Owner]) -> None:
        self._entries[entry.key] = entry
        self._tokens.setdefault(entry.owner, set()).add(entry.lease.token)
        self._standings[entry.lease.queue, entry.standing] += 1
        self._appointments.setdefault(entry.lease.queue, Appointments())

    def _restand(self, entry: _Entry[Owner], standing: Standing) -> None:
        self._standings[entry.lease.queue, entry.standing] -= 1
        self._standings[entry.lease.queue, standing] += 1
        entry.standing = standing
        self._appointments[entry.lease.queue].cancel(entry.key)

    def _remove(self, entry: _Entry[Owner]) -> None:
        self._yield_message(entry)
        self._standings[entry.lease.queue, entry.standing] -= 1
        self._appointments[entry.lease.queue].cancel(entry.key)
        del self._entries[entry.key]
        tokens = self._tokens[entry.owner]
        tokens.discard(entry.lease.token)
        if not tokens:
            del self._tokens[entry.owner]

    def _yield_message(self, entry: _Entry[Owner]) -> None:
        if self._newest.get(entry.message) == entry.key:
            del self._newest[entry.message]

    def _make_appointment(self, entry: _Entry[Owner]) -> None:
        """Note when to look at the entry again; while a call is on its way that is its result."""
        if entry.key in self._flying:
            return
        self._appointments[entry.lease.queue].make(entry.key, entry.attention_at)


def _new_entry(owner: Owner, lease: Terms, now: float) -> _Entry[Owner]:
    """The lease as SQS granted it.

    One whose granted time is over may have been extended by an extender that has died since. SQS
    knows: it is asked at once, and again for as long as an extension at half of the timeout lasts.
    """
    granted = lease.received_at + lease.visibility_seconds
    if granted > now:
        return _Entry(owner, lease, granted)
    return _Entry(owner, lease, now + lease.visibility_seconds / 2, presumed=True)
