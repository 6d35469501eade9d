"""Standard queues: roughly first in, first out; what comes back goes to the end."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import islice

import msgspec

from outboxd.localaws.sqs.message import Delivery, Message, State
from outboxd.localaws.sqs.queue import Identity, Queue
from outboxd.localaws.sqs.settings import Settings


class StandardQueue(Queue):
    """Delivers in order of arrival, as AWS does at best; `group` is kept and means nothing here."""

    def __init__(
        self,
        identity: Identity,
        settings: Settings,
        now: float,
        find_queue: Callable[[str], Queue | None],
    ) -> None:
        super().__init__(identity, settings, now, find_queue)
        # Not a dict: finding the first entry of one takes longer the more were removed before it.
        self._visible: OrderedDict[int, Message] = OrderedDict()
        self._newest_first = False

    @property
    def deliverable(self) -> bool:
        return bool(self._visible)

    def receive_newest_first(self, maximum: int, visibility: float, now: float) -> list[Delivery]:
        """As `receive`, in the order in which a standard queue rarely but legally delivers."""
        self._newest_first = True
        try:
            return self.receive(maximum, visibility, now)
        finally:
            self._newest_first = False

    def deliver_again(self, message: Message, now: float) -> None:
        """Make another delivery of a message that was just received certain.

        As when a server of SQS that holds a copy hears neither of the receive nor of the delete
        (Developer Guide, "At-least-once delivery"): so the copy does not count this receive.
        """
        message.copied = True
        copy = msgspec.structs.replace(message, receives=message.receives - 1)
        if copy.receives == 0:
            copy.first_received_at = None
        self.put(copy, 0, now)
        copy.receives_here = message.receives_here - 1

    def _candidates(self, limit: int) -> Sequence[Message]:
        visible = self._visible.values()
        return list(islice(reversed(visible) if self._newest_first else visible, limit))

    def _entered(self, message: Message) -> None:
        if message.state is State.VISIBLE:
            self._visible[message.serial] = message

    def _changed_state(self, message: Message) -> None:
        if message.state is State.VISIBLE:
            self._visible[message.serial] = message
        else:
            self._visible.pop(message.serial, None)

    def _left(self, message: Message) -> None:
        self._visible.pop(message.serial, None)

    def _emptied(self) -> None:
        self._visible.clear()

    def _may_delete(self, message: Message, receipt: int, handle: str) -> bool:
        # An expired handle deletes as long as nobody has received the message again; an older one
        # "succeeds, but the message might not be deleted": here it never is, the strict reading.
        return message.receipt == receipt
