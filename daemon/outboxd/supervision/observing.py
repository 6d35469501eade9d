"""What the supervisor tells about its children and itself, as facts in the past tense."""

from typing import Protocol

from outboxd.channels.protocol import Heartbeat
from outboxd.core.children import Kind
from outboxd.core.lives import Direction, ReloadResult, RestartReason, State

__all__ = ["Direction", "ReloadResult", "RestartReason", "State", "SupervisorObserver"]


class SupervisorObserver(Protocol):
    """Is told what happened; never raises and never waits, so that telling costs nothing.

    `child` is the name of a slot, which outlives its incarnations.
    """

    def child_added(self, child: str, kind: Kind) -> None:
        """A reload brought a slot that was not there."""

    def child_removed(self, child: str, kind: Kind) -> None:
        """A reload took the slot away, and its process has been reaped."""

    def reloaded(self, result: ReloadResult) -> None:
        """An attempt to use a new configuration ended."""

    def child_state(self, child: str, kind: Kind, state: State) -> None:
        """The slot entered `state`."""

    def child_started(self, child: str) -> None:
        """A process was spawned for the slot."""

    def child_ready(self, child: str, seconds: float) -> None:
        """The slot's process became ready, `seconds` after its spawn."""

    def child_ended(self, child: str, exit_code: int, reason: RestartReason | None) -> None:
        """The slot's process was reaped; no reason means that its end was planned."""

    def child_backoff(self, child: str, seconds: float) -> None:
        """The slot waits `seconds` before its next start; 0 once the wait is over."""

    def heartbeat(self, child: str, heartbeat: Heartbeat) -> None:
        """The slot's process gave a sign of life."""

    def queue_paused(self, queue: str, paused: bool) -> None:
        """An operator paused the queue, or had it resumed."""

    def ready(self, ready: bool) -> None:
        """Whether every required child is ready."""

    def stopping(self) -> None:
        """The first order to stop was given."""

    def loop_lag(self, seconds: float) -> None:
        """The supervisor's event loop woke up `seconds` late."""

    def frame_passed(self, child: str, direction: Direction) -> None:
        """A frame was written to, or read from, the slot's process."""

    def frames_queued(self, child: str, frames: int) -> None:
        """So many frames wait for the slot's process to read them."""

    def frame_dropped(self, child: str, direction: Direction) -> None:
        """A frame could not be handed on and is lost."""
