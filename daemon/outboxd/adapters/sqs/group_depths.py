"""How far the message groups of a FIFO queue have been seen, while what was seen is held."""

from collections.abc import Sequence

from outboxd.core.messages import ReceivedMessage
from outboxd.ports.queue import BATCH


class GroupDepths:
    """Knows which groups may go on behind the letters that are held of them.

    An answer that was not full brought all that could be received, so its groups are at their end.
    After a full one that is known of none of them: which ones SQS cuts off is not documented.
    """

    def __init__(self) -> None:
        self._held: dict[str, dict[str, None]] = {}
        self._open: dict[str, None] = {}
        self._probed: list[str] = []
        self._loose: set[str] = set()
        self._left: set[str] = set()

    @property
    def cut(self) -> list[str]:
        """Groups of which as many letters are held as one receive can bring, and maybe not all."""
        return [group for group in self._open if len(self._held[group]) >= BATCH]

    def received(self, messages: Sequence[ReceivedMessage], *, full: bool, news: bool) -> None:
        """An answer, whose messages are held from now on; `news` if some were not held before.

        A full answer without any, of letters whose time was over, says nothing. It must not open
        groups again, or two of them could take turns for ever.
        """
        groups = [group_of(message) for message in messages]
        for group, message in zip(groups, messages, strict=True):
            self._held.setdefault(group, {})[message.message_id] = None
        if full and news:
            self._open.update(dict.fromkeys([*groups, *self._probed]))
        elif not full:
            for group in groups:
                self._open.pop(group, None)
        answered = {message.message_id for message in messages}
        self._loose = {g for g in self._probed if full and not answered.issuperset(self._held[g])}
        self._probed = []

    def gone(self, message: ReceivedMessage) -> None:
        """It is deleted, and does not lock its group any more."""
        self._held[group_of(message)].pop(message.message_id, None)

    def leave(self, group: str) -> None:
        """What is behind this group's head has to wait for it."""
        self._left.add(group)

    def has_left(self, group: str) -> bool:
        return group in self._left

    def next_probe(self) -> list[str]:
        """Ids of all that is held of some groups that may go on; none if there is no such group.

        Once they are released, a receive of BATCH brings them again and shows what is behind them.
        They are fewer than BATCH, so that there is room for it. Groups that were probed before and
        did not come, or not whole, are among them: they are visible and take up room anyway.
        """
        ids: list[str] = []
        for group in sorted(self._open, key=lambda group: group not in self._loose):
            held = self._held[group]
            if not held or group in self._left:
                del self._open[group]
            elif len(ids) + len(held) < BATCH:
                del self._open[group]
                self._probed.append(group)
                ids += held
        return ids


def group_of(message: ReceivedMessage) -> str:
    """FIFO queues have no message without a group, but an answer may leave it out."""
    return message.group_id or ""
