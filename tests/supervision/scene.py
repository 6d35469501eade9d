"""A supervisor over scripted children, and everything that it told its observer."""

import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import cast
from uuid import UUID

import anyio
from anyio.abc import SocketStream

from outboxd.channels.protocol import Address, Heartbeat, Message, Welcome
from outboxd.core.children import ChildSpec, Kind, Slot
from outboxd.core.exit_codes import ExitCode
from outboxd.core.settings import Settings, SupervisorSettings
from outboxd.supervision.link import Link
from outboxd.supervision.metrics import MetricsBook
from outboxd.supervision.observing import Direction, RestartReason, State
from outboxd.supervision.process import Spawn, spawn
from outboxd.supervision.sd_notify import Notifier
from outboxd.supervision.supervisor import Supervisor

QUICK = SupervisorSettings(
    grace_seconds=3,
    escalation_seconds=1,
    start_deadline_seconds=10,
    backoff_first_seconds=0.01,
    backoff_cap_seconds=0.02,
    failed_retry_seconds=0.05,
)


class Facts:
    """Remembers what was told, and lets a test wait for a fact instead of for a time."""

    def __init__(self) -> None:
        self.history: list[str] = []
        self.restarts: list[tuple[str, RestartReason]] = []
        self.states: dict[str, State] = {}
        self._news = anyio.Event()

    async def until(self, holds: Callable[["Facts"], bool], seconds: float = 20) -> None:
        with anyio.fail_after(seconds):
            while not holds(self):
                await self._news.wait()

    def _tell(self, fact: str) -> None:
        self.history.append(fact)
        self._news.set()
        self._news = anyio.Event()

    def child_state(self, child: str, kind: Kind, state: State) -> None:
        self.states[child] = state
        self._tell(f"{child} {state}")

    def child_started(self, child: str) -> None:
        self._tell(f"{child} started")

    def child_ready(self, child: str, seconds: float) -> None: ...

    def child_ended(self, child: str, exit_code: int, reason: RestartReason | None) -> None:
        if reason is not None:
            self.restarts.append((child, reason))
        self._tell(f"{child} ended {exit_code}")

    def child_backoff(self, child: str, seconds: float) -> None: ...

    def heartbeat(self, child: str, heartbeat: Heartbeat) -> None:
        self._tell(f"{child} heartbeat")

    def queue_paused(self, queue: str, paused: bool) -> None:
        self._tell(f"{queue} {'paused' if paused else 'resumed'}")

    def ready(self, ready: bool) -> None:
        self._tell("ready" if ready else "not ready")

    def stopping(self) -> None:
        self._tell("stopping")

    def loop_lag(self, seconds: float) -> None: ...

    def frame_passed(self, child: str, direction: Direction) -> None: ...

    def frames_queued(self, child: str, frames: int) -> None: ...

    def frame_dropped(self, child: str, direction: Direction) -> None: ...


def scripted(monkeypatch_setenv: Callable[[str, str], None]) -> Spawn:
    """Starts scripted children instead of real ones."""
    monkeypatch_setenv("PYTHONPATH", str(Path(__file__).parent))
    return functools.partial(spawn, module="scripted_child")


def spec(
    name: str, heartbeat_deadline_seconds: float = 10, call_limit_seconds: float = math.inf
) -> ChildSpec:
    return ChildSpec(Slot.parse(name), heartbeat_deadline_seconds, call_limit_seconds)


def a_supervisor(
    facts: Facts, spawn: Spawn, *specs: ChildSpec, settings: SupervisorSettings = QUICK
) -> Supervisor:
    return Supervisor(
        Settings(supervisor=settings), specs, facts, MetricsBook(), Notifier({}), spawn
    )


class Run:
    """The exit code of a supervisor that runs in the background of a test."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self.code: ExitCode | None = None

    async def __call__(self) -> None:
        self.code = await self._supervisor.run(anyio.sleep_forever)


class Heard(Link):
    """A link that remembers what was told; it has no process behind it."""

    def __init__(self, name: str) -> None:
        nobody = cast("SocketStream", None)  # nothing is ever written to it
        super().__init__(Address(name, 1), nobody, lambda: None, lambda: None)
        self.close()
        self.heard: list[Message] = []

    def tell(self, message: Message) -> None:
        self.heard.append(message)


def a_welcome(address: Address) -> Welcome:
    return Welcome(Settings(), address, UUID(int=1))
