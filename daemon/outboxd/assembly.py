"""Wires settings into actors, and the supervisor's parts into a daemon: the composition root.

Each role imports what it needs when it is assembled, so that an extender does not carry a database
driver, and the supervisor neither that nor the AWS SDK.
"""

import logging
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Protocol, assert_never

import msgspec

from outboxd.adapters.logging import configure_logging
from outboxd.channels.mailbox import Mailbox
from outboxd.channels.protocol import MetricsSnapshot, Welcome
from outboxd.core.children import ChildSpec, Kind, Slot
from outboxd.core.exit_codes import ExitCode
from outboxd.core.settings import Settings
from outboxd.ports.progress import Progress


log = logging.getLogger(__name__)


class Actor(Protocol):
    """What a child does; it returns once it has drained."""

    async def run(self) -> None: ...


class Assembled(msgspec.Struct, frozen=True):
    """An actor, and what its child reports about it."""

    actor: Actor
    progress: Progress
    snapshot: Callable[[], MetricsSnapshot]


class Daemon:
    """The supervisor with its HTTP endpoint, bound and ready to run."""

    def __init__(self, settings: Settings, specs: Sequence[ChildSpec]) -> None:
        from outboxd.adapters.metrics.exposition import Exposition
        from outboxd.adapters.metrics.supervisor import SupervisorMetrics
        from outboxd.supervision.health import SupervisorHealth
        from outboxd.supervision.http import bind, create_app
        from outboxd.supervision.metrics import MetricsBook
        from outboxd.supervision.sd_notify import Notifier
        from outboxd.supervision.supervisor import Supervisor

        metrics = SupervisorMetrics((spec.name, spec.slot.kind) for spec in specs)
        book = MetricsBook(reserved=[metric.name for metric in metrics.registry.collect()])
        self._supervisor = Supervisor(settings, specs, metrics, book, Notifier())
        self._app = create_app(
            Exposition(metrics.registry, book.families).render,
            SupervisorHealth(self._supervisor, settings),
        )
        self._socket = bind(settings.http.host, settings.http.port)

    async def run(self) -> ExitCode:
        """Run until a stop; the exit code says why it ended."""
        return await self._supervisor.run(self._serve)

    async def _serve(self) -> None:
        from outboxd.supervision.http import serve

        host, port = self._socket.getsockname()[:2]
        log.info("listening", extra={"address": f"http://{host}:{port}"})
        await serve(self._app, self._socket)
