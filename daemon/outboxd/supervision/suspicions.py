"""What the dead incarnations of one slot may have died of, kept until a successor has it."""

import logging
from collections.abc import Iterable

import msgspec

from outboxd.channels.protocol import MAX_FRAME_BYTES, Suspect

log = logging.getLogger(__name__)

KEPT_SUSPECTS = 1000
KEPT_BYTES = MAX_FRAME_BYTES // 4
"""All suspects are told in one frame, the welcome, beside the settings."""

_encoder = msgspec.msgpack.Encoder()


class Suspicions:
    """Suspects are handed to every incarnation until one says that it has written them down.

    That it is ready does not say so: in an outage of its database it is ready, and waits.

    They live in memory: a daemon that stops first forgets them, and says so.
    """

    def __init__(self, child: str) -> None:
        self._child = child
        self._suspects: tuple[Suspect, ...] = ()

    @property
    def suspects(self) -> tuple[Suspect, ...]:
        """What the next incarnation is to be told, oldest first."""
        return self._suspects

    def add(self, suspects: Iterable[Suspect]) -> None:
        """An incarnation has died of one of these; the newest are kept."""
        known = (*self._suspects, *suspects)
        self._suspects = _newest(known)
        self._tell_dropped(len(known) - len(self._suspects), "too many suspects, the oldest go")

    def written_down(self) -> None:
        """The incarnation that was told them has recorded them; no other has died since."""
        self._suspects = ()

    def close(self) -> None:
        """No successor will come."""
        self._tell_dropped(len(self._suspects), "stopped before a successor took the suspects")
        self._suspects = ()

    def _tell_dropped(self, count: int, what: str) -> None:
        if count:
            log.warning(what, extra={"child": self._child, "count": count})


def _newest(suspects: tuple[Suspect, ...]) -> tuple[Suspect, ...]:
    left = KEPT_BYTES
    kept = 0
    for suspect in reversed(suspects[-KEPT_SUSPECTS:]):
        left -= len(_encoder.encode(suspect))
        if left < 0:
            break
        kept += 1
    return suspects[len(suspects) - kept :]
