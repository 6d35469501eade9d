"""The supervisor's own metrics."""

import platform
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, ProcessCollector

from outboxd.channels.protocol import Heartbeat
from outboxd.core.children import Kind, Slot
from outboxd.core.lives import Direction, ReloadResult, RestartReason, State
from outboxd.version import __version__

LAGS_KEPT = 60
"""The supervisor measures its lag about once a second."""


class SupervisorMetrics:
    """Counts what the supervisor tells, in its own registry; implements SupervisorObserver.

    Every series that the configuration foresees exists from the start with 0, so that a rate or an
    alert never has to wait for the first event.
    """

    def __init__(
        self,
        children: Iterable[tuple[str, Kind]],
        *,
        revision: str = "unknown",
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.registry = CollectorRegistry()
        self._wall_clock = wall_clock
        # Not "since the last scrape": two scrapers would take the peaks away from each other.
        self._lags: deque[float] = deque([0.0], maxlen=LAGS_KEPT)
        self._cpu_seconds: dict[str, float] = {}
        self._children: set[str] = set()
        ProcessCollector(registry=self.registry)
        self._declare_daemon(revision)
        self._declare_reloads()
        self._declare_lives()
        self._declare_heartbeats()
        self._declare_frames()
        for child, kind in children:
            self.child_added(child, kind)

    def _declare_daemon(self, revision: str) -> None:
        build = self._gauge("build_info", "Build identity", "version", "revision", "python")
        build.labels(__version__, revision, platform.python_version()).set(1)
        self._ready = self._gauge("ready", "1 when every required child is ready")
        self._stopping = self._gauge("shutdown_in_progress", "1 from the first stop request")
        self._paused = self._gauge(
            "queue_paused", "1 while an operator has paused this queue's pools", "queue"
        )
        self._loop_lag = self._gauge(
            "supervisor_loop_lag_seconds", "Largest event-loop delay of about the last minute"
        )

    def _declare_reloads(self) -> None:
        reloads = self._counter("config_reloads", "Reload attempts by outcome", "result")
        self._reloads = {result: reloads.labels(result.value) for result in ReloadResult}
        self._reload_good = self._gauge(
            "config_last_reload_successful", "0 after a rejected reload; 1 from the start"
        )
        self._reload_good.set(1)
        self._reload_time = self._gauge(
            "config_last_reload_success_timestamp_seconds",
            "Unix time at which the configuration in use was accepted",
        )
        self._reload_time.set(self._wall_clock())

    def _declare_lives(self) -> None:
        self._up = self._gauge("child_up", "1 only in state ready", "child", "kind")
        self._state = self._gauge(
            "child_state", "One series per state, one of them 1", "child", "state"
        )
        self._starts = self._counter("child_starts", "Processes spawned for this slot", "child")
        self._restarts = self._counter(
            "child_restarts",
            "Ends of a process that was started again, by reason",
            "child",
            "reason",
        )
        self._start_time = self._gauge(
            "child_start_time_seconds",
            "Unix time of the last spawn; uptime is time() - this",
            "child",
        )
        self._startup = self._gauge(
            "child_startup_duration_seconds", "Spawn to ready, last start", "child"
        )
        self._backoff = self._gauge(
            "child_backoff_seconds", "Delay before the next start, 0 when running", "child"
        )
        self._exit_code = self._gauge(
            "child_last_exit_code", "Exit status of the last end; negative is a signal", "child"
        )

    def _declare_heartbeats(self) -> None:
        self._rss = self._gauge("child_resident_memory_bytes", "Resident memory", "child")
        self._cpu = self._counter(
            "child_cpu_seconds", "CPU time of all processes of this slot", "child"
        )
        self._open_fds = self._gauge("child_open_fds", "Open file descriptors", "child")
        self._threads = self._gauge("child_threads", "Threads", "child")
        self._heartbeat_at = self._gauge(
            "child_last_heartbeat_timestamp_seconds", "Unix time of the last heartbeat", "child"
        )
        self._child_lag = self._gauge(
            "child_event_loop_lag_seconds", "Event-loop delay, from the last heartbeat", "child"
        )

    def _declare_frames(self) -> None:
        self._frames = self._counter(
            "ipc_frames", "Frames exchanged with this child", "child", "direction"
        )
        self._queued = self._gauge(
            "ipc_queue_frames", "Frames that wait for this child to read them", "child"
        )
        self._lost_frames = self._counter(
            "ipc_frames_dropped", "Frames that could not be handed on", "child", "direction"
        )

    @property
    def _gauges_of_a_child(self) -> tuple[Gauge, ...]:
        return (
            *(self._start_time, self._startup, self._backoff, self._exit_code, self._queued),
            *(self._rss, self._open_fds, self._threads, self._heartbeat_at, self._child_lag),
        )

    def child_added(self, child: str, kind: Kind) -> None:
        self.child_state(child, kind, State.STOPPED)
        self._children.add(child)
        if queue := Slot.parse(child).queue:
            self._paused.labels(queue)
        self._starts.labels(child)
        for reason in RestartReason:
            self._restarts.labels(child, reason.value)
        for gauge in (self._backoff, self._queued, self._rss, self._child_lag):
            gauge.labels(child)
        self._cpu.labels(child)
        for direction in get_args(Direction):
            self._frames.labels(child, direction)
            self._lost_frames.labels(child, direction)

    def child_removed(self, child: str, kind: Kind) -> None:
        """Its gauges go, or a slot that nobody wants would be alerted on; its counters stay."""
        self._up.remove(child, kind.value)
        for state in State:
            self._state.remove(child, state.value)
        for gauge in self._gauges_of_a_child:
            with suppress(KeyError):
                gauge.remove(child)
        self._children.discard(child)
        queue = Slot.parse(child).queue
        if queue and all(Slot.parse(other).queue != queue for other in self._children):
            self._paused.remove(queue)

    def reloaded(self, result: ReloadResult) -> None:
        self._reloads[result].inc()
        self._reload_good.set(1 if result is ReloadResult.OK else 0)
        if result is ReloadResult.OK:
            self._reload_time.set(self._wall_clock())

    def family_names(self) -> frozenset[str]:
        """Names that no child may use for a metric of its own."""
        names = {metric.name for metric in self.registry.collect()}
        return frozenset(names | {f"{name}_total" for name in names})

    def child_state(self, child: str, kind: Kind, state: State) -> None:
        for each in State:
            self._state.labels(child, each.value).set(1 if each is state else 0)
        self._up.labels(child, kind.value).set(1 if state is State.READY else 0)

    def child_started(self, child: str) -> None:
        self._starts.labels(child).inc()
        self._start_time.labels(child).set(self._wall_clock())
        self._cpu_seconds[child] = 0.0  # the new process counts its own time from zero

    def child_ready(self, child: str, seconds: float) -> None:
        self._startup.labels(child).set(seconds)

    def child_ended(self, child: str, exit_code: int, reason: RestartReason | None) -> None:
        self._exit_code.labels(child).set(exit_code)
        if reason is not None:
            self._restarts.labels(child, reason.value).inc()
        for gauge in (self._rss, self._open_fds, self._threads, self._child_lag, self._queued):
            gauge.labels(child).set(0)

    def child_backoff(self, child: str, seconds: float) -> None:
        self._backoff.labels(child).set(seconds)

    def heartbeat(self, child: str, heartbeat: Heartbeat) -> None:
        self._rss.labels(child).set(heartbeat.rss_bytes)
        self._open_fds.labels(child).set(heartbeat.open_fds)
        self._threads.labels(child).set(heartbeat.threads)
        self._child_lag.labels(child).set(heartbeat.loop_lag_seconds)
        self._heartbeat_at.labels(child).set(self._wall_clock())
        known = self._cpu_seconds.get(child, 0.0)
        self._cpu.labels(child).inc(max(0.0, heartbeat.cpu_seconds - known))
        self._cpu_seconds[child] = heartbeat.cpu_seconds

    def queue_paused(self, queue: str, paused: bool) -> None:
        self._paused.labels(queue).set(1 if paused else 0)

    def ready(self, ready: bool) -> None:
        self._ready.set(1 if ready else 0)

    def stopping(self) -> None:
        self._stopping.set(1)

    def loop_lag(self, seconds: float) -> None:
        self._lags.append(max(0.0, seconds))
        self._loop_lag.set(max(self._lags))

    def frame_passed(self, child: str, direction: Direction) -> None:
        self._frames.labels(child, direction).inc()

    def frames_queued(self, child: str, frames: int) -> None:
        self._queued.labels(child).set(frames)

    def frame_dropped(self, child: str, direction: Direction) -> None:
        self._lost_frames.labels(child, direction).inc()

    def _gauge(self, name: str, help_: str, *labels: str) -> Gauge:
        return Gauge(f"outboxd_{name}", help_, labels, registry=self.registry)

    def _counter(self, name: str, help_: str, *labels: str) -> Counter:
        return Counter(f"outboxd_{name}", help_, labels, registry=self.registry)
