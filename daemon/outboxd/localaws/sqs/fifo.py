"""FIFO queues: strict order within a message group, and deduplication."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from outboxd.localaws.recent import Recent
from outboxd.localaws.sqs.errors import receipt_handle_expired
from outboxd.localaws.sqs.message import Delivery, Message, State
from outboxd.localaws.sqs.queue import Identity, Queue
from outboxd.localaws.sqs.settings import Settings

DEDUPLICATION_SECONDS = 300

Group = OrderedDict[int, Message]


class Accepted(NamedTuple):
    """What the first send with a deduplication id was told; repeats are told the same."""

    message_id: str
    sequence: str


class FifoQueue(Queue):
    """Delivers, of each group, the messages before the first one that is hidden.

    That one rule is all of a group's locking: while its head is in flight nothing of the group is
    delivered, and whatever becomes visible again is delivered in its old place. A group is `ready`
    while its head is visible; ready groups take turns.
    """

    def __init__(
        self,
        identity: Identity,
        settings: Settings,
        now: float,
        find_queue: Callable[[str], Queue | None],
    ) -> None:
        super().__init__(identity, settings, now, find_queue)
        self._groups: dict[str, Group] = {}
        self._ready: OrderedDict[str, Group] = OrderedDict()
        self._accepted: Recent[tuple[str, str], Accepted] = Recent(DEDUPLICATION_SECONDS)
        self._attempts: Recent[str, list[Delivery]] = Recent(DEDUPLICATION_SECONDS)

    @property
    def deliverable(self) -> bool:
        return bool(self._ready)

    def accepted_before(self, group: str, deduplication_id: str, now: float) -> Accepted | None:
        """What a send with this id was told within the last five minutes, deleted since or not."""
        return self._accepted.get(self._scope(group, deduplication_id), now)

    def remember(self, message: Message, now: float) -> None:
        """Deduplicate against this message from now on."""
        key = self._scope(message.group or "", message.deduplication_id or "")
        self._accepted.put(key, Accepted(message.id, message.sequence or ""), now)

    def receive_again(self, attempt: str, visibility: float, now: float) -> list[Delivery]:
        """What the receive of this attempt id delivered, under its old handles and for longer.

        Empty once that is more than five minutes ago, or any of the messages was deleted, expired,
        or had its visibility changed.
        """
        self.catch_up(now)
        deliveries = self._attempts.get(attempt, now) or []
        if not all(self._untouched(delivery) for delivery in deliveries):
            return []
        for message, _ in deliveries:
            self._ends.set(message.serial, now + visibility)
        return deliveries

    def remember_attempt(self, attempt: str, deliveries: list[Delivery], now: float) -> None:
        self._attempts.put(attempt, deliveries, now)

    def adopt(self, message: Message, now: float) -> None:
        # Unlike a standard dead-letter queue, a FIFO one starts the retention anew.
        message.retained_since = now
        super().adopt(message, now)

    def _untouched(self, delivery: Delivery) -> bool:
        message = delivery.message
        return (
            self._messages.get(message.serial) is message
            and message.state is State.IN_FLIGHT
            and not message.visibility_changed
            and self._delivery(message).handle == delivery.handle
        )

    def _scope(self, group: str, deduplication_id: str) -> tuple[str, str]:
        return (group if self.settings.deduplicates_per_group else "", deduplication_id)

    def _room_in_flight(self) -> int:
        # "If you reach this limit, Amazon SQS returns no error messages" (ChangeMessageVisibility,
        # API reference, which also puts the limit at 120,000 now; it was 20,000).
        return max(0, self.IN_FLIGHT_LIMIT - self._counts[State.IN_FLIGHT])

    def _candidates(self, limit: int) -> Sequence[Message]:
        found: list[Message] = []
        for group in self._ready.values():
            for message in group.values():
                if message.state is not State.VISIBLE:
                    break
                found.append(message)
                if len(found) == limit:
                    return found
        return found

    def _entered(self, message: Message) -> None:
        group = self._groups.setdefault(message.group or "", OrderedDict())
        group[message.serial] = message
        self._review(message)

    def _changed_state(self, message: Message) -> None:
        self._review(message)

    def _left(self, message: Message) -> None:
        del self._groups[message.group or ""][message.serial]
        self._review(message)

    def _emptied(self) -> None:
        self._groups.clear()
        self._ready.clear()
        self._accepted.clear()

    def _may_delete(self, message: Message, receipt: int, handle: str) -> bool:
        if message.receipt != receipt or message.state is not State.IN_FLIGHT:
            raise receipt_handle_expired(handle)
        return True

    def _review(self, message: Message) -> None:
        """Keep `_groups` and `_ready` true after a change to this message."""
        name = message.group or ""
        group = self._groups[name]
        head = next(iter(group.values()), None)
        if head is None:
            del self._groups[name]
        if head is not None and head.state is State.VISIBLE:
            self._ready.setdefault(name, group)
        else:
            self._ready.pop(name, None)
