"""The vocabulary of a child's life: its states, its unplanned ends, its channel's directions."""

from enum import StrEnum
from typing import Literal

Direction = Literal["to_child", "from_child"]


class State(StrEnum):
    """Where a child's slot stands; it is in exactly one of these."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"
    STOPPED = "stopped"
    BACKOFF = "backoff"
    FAILED = "failed"


class RestartReason(StrEnum):
    """Why a child ended without a plan; a closed set, so that it may be a metric's label."""

    CRASH = "crash"
    SIGNAL = "signal"
    HEARTBEAT = "heartbeat"
    STARTUP_TIMEOUT = "startup_timeout"
    PROTOCOL = "protocol"
    STUCK = "stuck"
    HANDLER_TIMEOUT = "handler_timeout"
