"""Which child processes a configuration asks for."""

import math
from enum import StrEnum
from typing import NamedTuple, assert_never

import msgspec

from outboxd.core.errors import SettingsError
from outboxd.core.settings import QueueSettings, RecycleSettings, Settings

POOL_HEARTBEAT_FLOOR_SECONDS = 30.0
"""Handlers may hold the GIL in a C call, which silences the event loop of a healthy pool too."""

POOL_HEARTBEAT_MARGIN_SECONDS = 15.0

STUCK_FACTOR = 2.0
STUCK_MARGIN_SECONDS = 60.0
"""A pool that ends because of one handler lets the others finish, so a call in it may rightly be as
old as two timeouts, and a last receive and the settling beyond that."""

SETTLE_SECONDS = 5.0
EXTENDER_DRAIN_SECONDS = 1.0
"""An extender that is replaced has nothing to finish: its successor is told every lease."""


class Kind(StrEnum):
    """What a child does."""

    RELAY = "relay"
    EXTENDER = "extender"
    CONSUMER = "consumer"


class Slot(NamedTuple):
    """One place for a child; `queue` and `number` tell the processes of consumer pools apart."""

    kind: Kind
    queue: str = ""
    number: int = 0

    @property
    def name(self) -> str:
        """The name that logs, metrics, addresses and the command line use."""
        return f"consumer:{self.queue}/{self.number}" if self.queue else self.kind.value

    @classmethod
    def parse(cls, name: str) -> "Slot":
        """The slot of a name. Raises ValueError if it names none."""
        kind, _, rest = name.partition(":")
        if not rest:
            return cls(Kind(kind))
        queue, _, number = rest.rpartition("/")
        return cls(Kind(kind), queue, int(number))


class ChildSpec(msgspec.Struct, frozen=True):
    """One child that the supervisor keeps running.

    One call of a handler, with one message or with a batch, that has run for `call_limit_seconds`
    neither ends nor can be ended; children without handlers have no such limit. `drain_seconds` is
    what its process may take to finish when it is replaced, in a reload for one.
    """

    slot: Slot
    heartbeat_deadline_seconds: float
    call_limit_seconds: float = math.inf
    drain_seconds: float = 20.0
    recycle: RecycleSettings = RecycleSettings()

    @property
    def name(self) -> str:
        return self.slot.name


def children_of(settings: Settings, only: str | None = None) -> tuple[ChildSpec, ...]:
    """The children of the whole daemon, or of the part that `only` names.

    `only` is "relay" or "consumer:<queue>"; consumers bring the extender along. Raises
    SettingsError if the configuration has no such part.
    """
    relay = settings.relay is not None and only in (None, "relay")
    queues = [name for name in settings.consumed if only in (None, f"consumer:{name}")]
    if not relay and not queues:
        raise SettingsError([_nothing_to_run(settings, only)])
    slots = [Slot(Kind.EXTENDER)] if queues else []
    slots += [Slot(Kind.RELAY)] if relay else []
    slots += [
        Slot(Kind.CONSUMER, name, number)
        for name in queues
        for number in range(1, settings.queues[name].processes + 1)
    ]
    return tuple(_spec(settings, slot) for slot in slots)


def _spec(settings: Settings, slot: Slot) -> ChildSpec:
    it = settings.supervisor
    grace = it.grace_seconds - it.escalation_seconds
    match slot.kind:
        case Kind.EXTENDER:
            return ChildSpec(
                slot, it.heartbeat_deadline_seconds, drain_seconds=EXTENDER_DRAIN_SECONDS
            )
        case Kind.RELAY:
            return ChildSpec(slot, it.heartbeat_deadline_seconds, drain_seconds=grace)
        case Kind.CONSUMER:
            return _pool(settings.queues[slot.queue], slot, grace)
        case _:
            assert_never(slot.kind)


def _pool(queue: QueueSettings, slot: Slot, grace: float) -> ChildSpec:
    # Of a batch handler this is the time of one call with the whole batch.
    longest = max((handler.timeout_seconds for handler in queue.handlers), default=0.0)
    return ChildSpec(
        slot,
        max(POOL_HEARTBEAT_FLOOR_SECONDS, longest + POOL_HEARTBEAT_MARGIN_SECONDS),
        STUCK_FACTOR * longest + STUCK_MARGIN_SECONDS,
        # A stop has a bound that the service manager sets. Nothing hurries a replacement, so no
        # handler that keeps its own time is cut short by one.
        max(grace, queue.wait_seconds + longest + SETTLE_SECONDS),
        queue.recycle,
    )


def _nothing_to_run(settings: Settings, only: str | None) -> str:
    if only is None:
        return "the configuration has neither a [relay] nor a queue with handlers: nothing to run"
    parts = ["relay"] if settings.relay is not None else []
    parts += [f"consumer:{name}" for name in settings.consumed]
    return f"--only {only}: no such part in the configuration; it has {', '.join(parts) or 'none'}"
