"""When a healthy process is replaced by a fresh one: after so many messages, so long, so fat."""

import math
import random

import msgspec

from outboxd.core.lives import RestartReason
from outboxd.core.retry import Dice
from outboxd.core.settings import RecycleSettings

JITTER = 0.1
"""Messages and age are up to this share more or less, so that a pool's processes drift apart."""

FAT_HEARTBEATS = 3
"""One heartbeat above the limit may be a large message that is freed again."""


class RecycleLimits(msgspec.Struct, frozen=True):
    """What one process may reach; `inf` is no limit."""

    messages: float = math.inf
    age_seconds: float = math.inf
    rss_bytes: float = math.inf


def drawn(settings: RecycleSettings, dice: Dice = random.random) -> RecycleLimits:
    """The limits of one process."""

    def jittered(limit: float | None) -> float:
        return math.inf if limit is None else limit * (1 + JITTER * (2 * dice() - 1))

    return RecycleLimits(
        jittered(settings.max_messages),
        jittered(settings.max_age_seconds),
        math.inf if settings.max_rss_bytes is None else settings.max_rss_bytes,
    )


class RecycleWatch:
    """Looks at each heartbeat of one process."""

    def __init__(self, limits: RecycleLimits) -> None:
        self._limits = limits
        self._fat = 0

    def due(self, messages: int, age_seconds: float, rss_bytes: int) -> RestartReason | None:
        """Why the process is to be replaced, if it is; `age_seconds` since it became ready."""
        self._fat = self._fat + 1 if rss_bytes > self._limits.rss_bytes else 0
        if self._fat >= FAT_HEARTBEATS:
            return RestartReason.RECYCLE_RSS
        if messages >= self._limits.messages:
            return RestartReason.RECYCLE_MESSAGES
        if age_seconds >= self._limits.age_seconds:
            return RestartReason.RECYCLE_AGE
        return None
