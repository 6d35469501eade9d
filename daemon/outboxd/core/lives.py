"""The vocabulary of a child's life: its states, its ends, its channel's directions, its reloads."""

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
    """Why a child ended and was started again; a closed set, so that it may be a metric's label.

    Those from RECYCLE_AGE on are planned: a drain, and no mark against the child.
    """

    CRASH = "crash"
    SIGNAL = "signal"
    HEARTBEAT = "heartbeat"
    STARTUP_TIMEOUT = "startup_timeout"
    PROTOCOL = "protocol"
    STUCK = "stuck"
    HANDLER_TIMEOUT = "handler_timeout"
    RECYCLE_AGE = "recycle_age"
    RECYCLE_MESSAGES = "recycle_messages"
    RECYCLE_RSS = "recycle_rss"
    RELOAD = "reload"
    OPERATOR = "operator"


class ReloadResult(StrEnum):
    """How an attempt to use a new configuration ended; anything but OK keeps the old one."""

    OK = "ok"
    INVALID = "invalid"
    CHILD_NOT_READY = "child_not_ready"
    ABORTED = "aborted"
