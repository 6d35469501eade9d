"""What standard and FIFO queues have in common: leases, delays, retention, dead letters.

No input, no output and no clock: every operation is given the time. Each one first brings the
queue up to that time, so that a queue looked at by itself needs no timer to be right. No operation
costs more than O(log n) for each message it touches.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

from outboxd.localaws.deadlines import Deadlines
from outboxd.localaws.sqs.errors import (
    invalid_parameter_value,
    message_not_available,
    message_not_in_flight,
    over_limit,
    purge_in_progress,
)
from outboxd.localaws.sqs.handles import opened, receipt_handle
from outboxd.localaws.sqs.message import Delivery, Depth, Message, State
from outboxd.localaws.sqs.settings import MAX_VISIBILITY_SECONDS, Settings

PURGE_INTERVAL_SECONDS = 60


class Identity(NamedTuple):
    """What does not change about a queue; `key` is random and part of its receipt handles."""

    region: str
    name: str
    arn: str
    key: bytes


class Queue(ABC):
    """The messages of one queue.

    A message is visible, in flight or delayed until it is deleted, expires, or moves to the
    dead-letter queue. `find_queue` resolves the ARN of that queue; `on_change` is called after
    everything that may have given a waiting receiver something to receive.
    """

    IN_FLIGHT_LIMIT = 120_000

    def __init__(
        self,
        identity: Identity,
        settings: Settings,
        now: float,
        find_queue: Callable[[str], "Queue | None"],
    ) -> None:
        self.identity = identity
        self.settings = settings
        self.tags: dict[str, str] = {}
        self.created_at = now
        self.modified_at = now
        self.deleted = False
        self.on_change: Callable[[], None] = _nothing
        self._find_queue = find_queue
        self._purged_at: float | None = None
        self._messages: dict[int, Message] = {}
        self._counts = dict.fromkeys(State, 0)
        self._last_serial = 0
        # Keyed by serial: the end of a delay or lease, and the time from which retention counts.
        self._ends: Deadlines[int] = Deadlines()
        self._ages: Deadlines[int] = Deadlines()

    @property
    @abstractmethod
    def deliverable(self) -> bool:
        """Whether a receive would find a message now."""

    @abstractmethod
    def _candidates(self, limit: int) -> Sequence[Message]:
        """Up to `limit` visible messages that may be received together, first one first."""

    @abstractmethod
    def _entered(self, message: Message) -> None:
        """`message` has joined the queue; its state is set, `_changed_state` will not be called."""

    @abstractmethod
    def _changed_state(self, message: Message) -> None: ...

    @abstractmethod
    def _left(self, message: Message) -> None: ...

    @abstractmethod
    def _emptied(self) -> None: ...

    @abstractmethod
    def _may_delete(self, message: Message, receipt: int, handle: str) -> bool:
        """Whether this receipt still deletes the message. May raise instead."""

    def depth(self, now: float) -> Depth:
        self.catch_up(now)
        return Depth(*self._counts.values())

    def next_change_at(self) -> float | None:
        """When the next message becomes visible by itself."""
        return self._ends.earliest()

    def catch_up(self, now: float) -> None:
        """Apply everything that has happened by itself up to `now`."""
        for serial in self._ages.due(now - self.settings.retention_seconds):
            self._remove(self._messages[serial])
            # Behind the head of a FIFO group others may have waited.
            self.on_change()
        for serial in self._ends.due(now):
            message = self._messages[serial]
            if not self._buried(message, now):
                self._set_state(message, State.VISIBLE)
                self.on_change()

    def put(self, message: Message, delay: float, now: float) -> None:
        """Take in a message that is new here, hidden for `delay` seconds."""
        self._last_serial += 1
        message.serial = serial = self._last_serial
        message.receipt = 0
        message.receives_here = 0
        message.state = State.DELAYED if delay > 0 else State.VISIBLE
        self._messages[serial] = message
        self._counts[message.state] += 1
        self._ages.set(serial, message.retained_since)
        if delay > 0:
            self._ends.set(serial, now + delay)
        self._entered(message)
        self.on_change()

    def adopt(self, message: Message, now: float) -> None:
        """Take in a dead letter of another queue; id, attributes and receive count stay."""
        self.put(message, 0, now)

    def receive(self, maximum: int, visibility: float, now: float) -> list[Delivery]:
        """Lease up to `maximum` messages. Raises OverLimit where AWS does."""
        self.catch_up(now)
        maximum = min(maximum, self._room_in_flight())
        deliveries: list[Delivery] = []
        while len(deliveries) < maximum:
            candidates = self._candidates(maximum - len(deliveries))
            if not candidates:
                break
            deliveries.extend(
                self._lease(message, visibility, now)
                for message in candidates
                if not self._buried(message, now)
            )
        if deliveries:
            self.on_change()
        return deliveries

    def delete(self, handle: str, now: float) -> None:
        """Delete the message this handle was given out for; nothing happens if it is gone."""
        self.catch_up(now)
        serial, receipt = opened(handle, self.identity.key)
        message = self._messages.get(serial)
        if message is not None and self._may_delete(message, receipt, handle):
            self._remove(message)
            self.on_change()

    def change_visibility(self, handle: str, seconds: int, now: float) -> None:
        """Let the lease end `seconds` from now, at most 12 hours after the receive.

        Raises AwsError, also when the lease has run out or somebody else has it now.
        """
        self.catch_up(now)
        serial, receipt = opened(handle, self.identity.key)
        message = self._messages.get(serial)
        if message is None or message.receipt != receipt:
            raise message_not_available(handle)
        if message.state is not State.IN_FLIGHT:
            raise message_not_in_flight()
        if now - message.received_at + seconds > MAX_VISIBILITY_SECONDS:
            raise invalid_parameter_value(
                seconds,
                "VisibilityTimeout",
                "Total VisibilityTimeout for the message is beyond the limit "
                f"[{MAX_VISIBILITY_SECONDS} seconds]",
            )
        message.visibility_changed = True
        self._ends.set(serial, now + seconds)
        self.catch_up(now)
        self.on_change()

    def purge(self, now: float) -> None:
        """Drop every message. Raises PurgeQueueInProgress within a minute of the last purge."""
        if self._purged_at is not None and now < self._purged_at + PURGE_INTERVAL_SECONDS:
            raise purge_in_progress(self.identity.name)
        self._purged_at = now
        self._clear()

    def delete_queue(self) -> None:
        """The queue is gone, and its messages with it; receivers that wait for it are told."""
        self.deleted = True
        self._clear()
        self.on_change()

    def peek(self, limit: int, now: float) -> Sequence[Message]:
        """Up to `limit` visible messages, in the order in which they would be received."""
        self.catch_up(now)
        return self._candidates(limit)

    def withdraw(self, message: Message) -> None:
        """Take a visible message out, to put it elsewhere."""
        self._remove(message)
        self.on_change()

    def _clear(self) -> None:
        self._messages.clear()
        self._counts = dict.fromkeys(State, 0)
        self._ends.clear()
        self._ages.clear()
        self._emptied()

    def _room_in_flight(self) -> int:
        room = self.IN_FLIGHT_LIMIT - self._counts[State.IN_FLIGHT]
        if room <= 0:
            raise over_limit(
                f"The queue {self.identity.name} has {self.IN_FLIGHT_LIMIT} messages in flight: "
                "delete messages before receiving more."
            )
        return room

    def _lease(self, message: Message, visibility: float, now: float) -> Delivery:
        message.receipt += 1
        message.receives += 1
        message.receives_here += 1
        message.received_at = now
        message.visibility_changed = False
        if message.first_received_at is None:
            message.first_received_at = now
        self._set_state(message, State.IN_FLIGHT)
        self._ends.set(message.serial, now + visibility)
        return self._delivery(message)

    def _delivery(self, message: Message) -> Delivery:
        return Delivery(message, receipt_handle(self.identity.key, message.serial, message.receipt))

    def _buried(self, message: Message, now: float) -> bool:
        """Move a message that was received as often as allowed to the dead-letter queue."""
        redrive = self.settings.redrive
        if redrive is None or message.receives_here < redrive.max_receive_count:
            return False
        grave = self._find_queue(redrive.target_arn)
        if grave is None:
            # The dead-letter queue was deleted: keeping the letter here is better than losing it.
            return False
        self._remove(message)
        message.dead_letter_source = self.identity.arn
        grave.adopt(message, now)
        self.on_change()
        return True

    def _set_state(self, message: Message, state: State) -> None:
        self._counts[message.state] -= 1
        self._counts[state] += 1
        message.state = state
        self._changed_state(message)

    def _remove(self, message: Message) -> None:
        del self._messages[message.serial]
        self._counts[message.state] -= 1
        self._ends.cancel(message.serial)
        self._ages.cancel(message.serial)
        self._left(message)


def _nothing() -> None:
    return None
