"""The status at this moment, from the supervisor's lives, its health and the exposition."""

import logging
import os
import socket
import time
from collections.abc import Callable, Iterable, Sequence

import anyio

from outboxd.core.children import Kind
from outboxd.core.clock import boottime
from outboxd.core.redaction import redactor, secrets_in_environment, secrets_of
from outboxd.supervision.health import SupervisorHealth
from outboxd.supervision.life import Life
from outboxd.supervision.status import names
from outboxd.supervision.status.counted_troubles import counted_troubles
from outboxd.supervision.status.history import STEP_SECONDS
from outboxd.supervision.status.log_tap import LOGGER, LogTap
from outboxd.supervision.status.model import Child, Status
from outboxd.supervision.status.outbox_status import outbox_status
from outboxd.supervision.status.problems import health_of, problems_of, summary_of
from outboxd.supervision.status.queue_status import handler_status, queue_status
from outboxd.supervision.status.readings import Line, Readings
from outboxd.supervision.status.steps import Scope, Steps, failures_of
from outboxd.supervision.status.totals import totals_of
from outboxd.supervision.status.troubles import Troubles
from outboxd.supervision.supervisor import Supervisor
from outboxd.version import __version__

log = logging.getLogger(__name__)

FRESH_SECONDS = 1.0
"""However many look, the work is done once for all of them."""


class StatusWatch:
    """Remembers the last 15 minutes, and tells what is now. It asks nobody."""

    def __init__(
        self,
        supervisor: Supervisor,
        health: SupervisorHealth,
        lines: Callable[[], Iterable[Line]],
        *,
        clock: Callable[[], float] = boottime,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """`lines` are all samples that the daemon exposes."""
        self._supervisor = supervisor
        self._health = health
        self._lines = lines
        self._clock = clock
        self._wall_clock = wall_clock
        self._host = socket.gethostname()
        self._began_at = self._stepped_at = clock()
        self._steps = Steps()
        self._troubles = Troubles()
        self._tap = LogTap(self._troubles, self._redacted)
        self._latest: tuple[float, Status] | None = None

    async def run(self) -> None:
        """Take a step every ten seconds, and listen to the log, until cancelled."""
        logger = logging.getLogger(LOGGER)
        logger.addHandler(self._tap)
        try:
            while True:
                await anyio.sleep(STEP_SECONDS)
                try:
                    self.step()
                except Exception:  # a page is no reason for the daemon to end
                    log.exception("the status cannot be kept")
        finally:
            logger.removeHandler(self._tap)

    def step(self) -> None:
        """Remember what has happened since the last step."""
        now = self._clock()
        readings = self._readings()
        for each in counted_troubles(readings, self._steps.before):
            self._troubles.add(
                self._wall_clock(),
                each.level,
                each.source,
                each.text,
                count=each.count,
                look=each.look,
            )
        self._steps.took(self._scope(), readings, now - self._stepped_at)
        self._stepped_at = now
        self._latest = None

    def now(self) -> Status:
        """What is now; not older than a second."""
        now = self._clock()
        if self._latest is None or now - self._latest[0] >= FRESH_SECONDS:
            self._latest = (now, self._status(now))
        return self._latest[1]

    def _status(self, now: float) -> Status:
        readings, wall = self._readings(), self._wall_clock()
        scope = self._scope()
        children = tuple(self._child(name, now, readings) for name in scope.children)
        outbox = (
            outbox_status(scope.destinations, readings, self._steps, wall)
            if scope.destinations is not None
            else None
        )
        letters = self._dead_letter_queues()
        queues = tuple(
            queue_status(queue, letters[queue], readings, self._steps, wall)
            for queue in scope.handlers
        )
        handlers = tuple(
            handler_status(queue, handler, readings, self._steps)
            for queue, names_of_it in scope.handlers.items()
            for handler in names_of_it
        )
        problems = problems_of(
            broken=self._health.alive(),
            not_ready=self._health.ready(),
            children=children,
            outbox=outbox,
            queues=queues,
            handlers=handlers,
            reload_refused=readings.sum(names.RELOAD_GOOD) == 0,
            heartbeat_interval_seconds=self._heartbeat_interval_seconds(),
        )
        health = health_of(problems, children, stopping=self._supervisor.stopping)
        return Status(
            at=wall,
            host=self._host,
            version=__version__,
            health=health,
            summary=summary_of(health, problems),
            up_seconds=now - self._began_at,
            observed_seconds=self._steps.observed_seconds,
            step_seconds=STEP_SECONDS,
            problems=problems,
            totals=totals_of(queues, children),
            children=children,
            outbox=outbox,
            queues=queues,
            handlers=handlers,
            errors=self._troubles.newest(wall),
        )

    def _child(self, name: str, now: float, readings: Readings) -> Child:
        life = self._supervisor.life(name)
        current = life.current
        heartbeat = current.heartbeat if current is not None else None
        consumes = life.spec.slot.kind is Kind.CONSUMER
        return Child(
            name=name,
            kind=life.spec.slot.kind.value,
            state=life.state.value,
            pid=current.process.pid if current is not None else None,
            up_seconds=now - current.started_at if current is not None else None,
            restarts=life.restarts,
            failures=failures_of(name, readings),
            recent_failures=self._steps.total("failures", name),
            rss_bytes=heartbeat.rss_bytes if heartbeat is not None else None,
            heartbeat_age_seconds=now - current.heard_at if current is not None else None,
            in_flight=heartbeat.in_flight if heartbeat is not None and consumes else None,
        )

    def _heartbeat_interval_seconds(self) -> float:
        """The longest that was given to a child: in a reload there may be two."""
        return max(
            (
                life.terms.settings.supervisor.heartbeat_interval_seconds
                for life in self._supervisor.lives
            ),
            default=0.0,
        )

    def _scope(self) -> Scope:
        lives = self._supervisor.lives
        handlers: dict[str, Sequence[str]] = {}
        for life in lives:
            if queue := life.spec.slot.queue:
                configured = life.terms.settings.queues[queue].handlers
                handlers.setdefault(queue, [handler.name for handler in configured])
        return Scope(
            [life.name for life in lives],
            handlers,
            next(
                (_destinations(each) for each in lives if each.spec.slot.kind is Kind.RELAY), None
            ),
        )

    def _redacted(self, text: str) -> str:
        # Anew each time: a reload brings other settings, one child at a time.
        hidden = [
            each for life in self._supervisor.lives for each in secrets_of(life.terms.settings)
        ]
        return redactor([*hidden, *secrets_in_environment(os.environ)])(text)

    def _dead_letter_queues(self) -> dict[str, str]:
        return {
            queue: life.terms.settings.dead_letter_name(queue)
            for life in self._supervisor.lives
            if (queue := life.spec.slot.queue)
        }

    def _readings(self) -> Readings:
        return Readings(self._lines(), names.NAMES)


def _destinations(relay: Life) -> Sequence[str]:
    """Those of its routes. While no relay runs nothing is known of them, but they are there."""
    settings = relay.terms.settings.relay
    routes = settings.routes if settings is not None else ()
    return tuple(dict.fromkeys(name for route in routes for name in route.to))
