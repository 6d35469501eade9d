"""A supervisor over scripted children, and everything that it told its observer."""

import functools
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast
from uuid import UUID

import anyio
from anyio.abc import ByteStream

from outboxd.channels.protocol import Address, Heartbeat, Message, Welcome
from outboxd.core.children import ChildSpec, Kind, Slot, children_of
from outboxd.core.errors import SettingsError
from outboxd.core.exit_codes import ExitCode
from outboxd.core.settings import QueueSettings, Settings, SupervisorSettings
from outboxd.supervision.link import Link
from outboxd.supervision.metrics import MetricsBook
from outboxd.supervision.observing import Direction, ReloadResult, RestartReason, State
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

    def child_added(self, child: str, kind: Kind) -> None:
        self._tell(f"{child} added")

    def child_removed(self, child: str, kind: Kind) -> None:
        self._tell(f"{child} removed")

    def reloaded(self, result: ReloadResult) -> None:
        self._tell(f"reloaded {result}")

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


class Configured:
    """A source that has what a test puts there; its daemon runs everything."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.adopted_ones: list[Settings] = []
        self.problems: list[str] = []
        self.may_answer = anyio.Event()
        self.may_answer.set()
        self.being_read = anyio.Event()
        self.reads = 0

    async def read(self) -> Settings:
        self.reads += 1
        self.being_read.set()
        await self.may_answer.wait()
        if self.problems:
            raise SettingsError(self.problems)
        return self.settings

    def children(self, settings: Settings) -> Sequence[ChildSpec]:
        return children_of(settings)

    def adopted(self, settings: Settings) -> None:
        self.adopted_ones.append(settings)


def a_configured_supervisor(
    facts: Facts, spawn: Spawn, source: Configured, notifier: Notifier | None = None
) -> Supervisor:
    """One that can reload what the source has by then."""
    settings = source.settings
    return Supervisor(
        settings,
        children_of(settings),
        facts,
        MetricsBook(),
        notifier or Notifier({}),
        spawn,
        source,
    )


def a_supervisor(
    facts: Facts,
    spawn: Spawn,
    *specs: ChildSpec,
    settings: SupervisorSettings = QUICK,
    notifier: Notifier | None = None,
) -> Supervisor:
    queues = {spec.slot.queue: QueueSettings(concurrency=2) for spec in specs if spec.slot.queue}
    return Supervisor(
        Settings(supervisor=settings, queues=queues),
        specs,
        facts,
        MetricsBook(),
        notifier or Notifier({}),
        spawn,
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
        nobody = cast("ByteStream", None)  # nothing is ever written to it
        super().__init__(Address(name, 1), nobody, lambda: None, lambda _: None)
        self.close()
        self.heard: list[Message] = []

    def tell(self, message: Message) -> None:
        self.heard.append(message)


def a_welcome(address: Address) -> Welcome:
    return Welcome(Settings(), address, UUID(int=1))
