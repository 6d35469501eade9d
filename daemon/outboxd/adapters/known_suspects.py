"""The suspects of a pool without a database: what the supervisor told this process, and no more."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from uuid import UUID

from outboxd.channels.protocol import Suspect
from outboxd.core.judging import CRASHES_ALONE
from outboxd.core.messages import ReceivedMessage
from outboxd.ports.suspects import Suspicion

REMEMBERED = 10_000

_NOTHING = Suspicion(0, "")


class KnownSuspects:
    """Keeps `ports.suspects.Suspects` in memory, which the next crash empties.

    So crashes of one message hardly ever add up. SQS's receive count bounds it instead: a suspect
    that was received more than `limit` times is given up like one that crashed alone too often.
    """

    def __init__(self, limit: int) -> None:
        """`limit` is the queue's `max_attempts`."""
        self._limit = limit
        self._known: OrderedDict[str, tuple[UUID, Suspicion]] = OrderedDict()

    async def record(self, suspects: Sequence[Suspect]) -> None:
        for suspect in suspects:
            death, before = self._known.get(suspect.message_id, (None, _NOTHING))
            if death != suspect.death:
                crashes = before.crashes_alone + suspect.alone
                known = suspect.death, Suspicion(crashes, suspect.reason)
                self._known[suspect.message_id] = known
            self._known.move_to_end(suspect.message_id)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)

    async def look_up(self, messages: Sequence[ReceivedMessage]) -> Mapping[str, Suspicion]:
        return {
            message.message_id: self._judged(message, known[1])
            for message in messages
            if (known := self._known.get(message.message_id)) is not None
        }

    async def cleared(self, message_ids: Sequence[str]) -> None:
        for message_id in message_ids:
            self._known.pop(message_id, None)

    def _judged(self, message: ReceivedMessage, known: Suspicion) -> Suspicion:
        if message.receive_count > self._limit:
            return Suspicion(max(CRASHES_ALONE, known.crashes_alone), known.reason)
        return known
