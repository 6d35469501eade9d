"""Wires settings into actors, and the supervisor's parts into a daemon: the composition root.

Each role imports what it needs when it is assembled, so that an extender does not carry a database
driver, and the supervisor neither that nor the AWS SDK.
"""

import logging
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import assert_never

import msgspec
from anyio import create_task_group, to_thread
from prometheus_client import CollectorRegistry

from outboxd.actors.accompanied import Accompanied
from outboxd.actors.on_known_tables import Actor, OnKnownTables
from outboxd.adapters.logging import Log, configure_logging
from outboxd.adapters.metrics.snapshot import snapshot
from outboxd.channels.mailbox import Mailbox
from outboxd.channels.protocol import MetricsSnapshot, Welcome
from outboxd.core.children import ChildSpec, Kind, Slot
from outboxd.core.exit_codes import ExitCode
from outboxd.core.settings import DatabaseSettings, Settings
from outboxd.ports.destination import Destination
from outboxd.ports.progress import Progress

log = logging.getLogger(__name__)


class Assembled(msgspec.Struct, frozen=True):
    """An actor, and what its child reports about it."""

    actor: Actor
    progress: Progress
    snapshot: Callable[[], MetricsSnapshot]


@asynccontextmanager
async def assemble(slot: Slot, welcome: Welcome, mailbox: Mailbox) -> AsyncIterator[Assembled]:
    """The actor of a slot, its connections open for the length of the block.

    Raises SettingsError when the actor cannot work with these settings.
    """
    settings = welcome.settings
    log_of_process = configure_logging(settings, slot.name)
    match slot.kind:
        case Kind.RELAY:
            wiring = assembled_relay(welcome, mailbox)
        case Kind.CONSUMER:
            wiring = _consumer(slot, welcome, mailbox, log_of_process)
        case Kind.EXTENDER:
            wiring = _extender(settings, mailbox)
        case _:
            assert_never(slot.kind)
    async with wiring as assembled:
        yield assembled


@asynccontextmanager
async def assembled_relay(
    welcome: Welcome, mailbox: Mailbox, destinations: Mapping[str, Destination] | None = None
) -> AsyncIterator[Assembled]:
    """The relay, with the destinations of its settings unless it is given others of these names."""
    from outboxd.actors.relay import Relay
    from outboxd.adapters.conninfo import database_of
    from outboxd.adapters.destinations import relay_destinations
    from outboxd.adapters.metrics.relay import RelayMetrics
    from outboxd.adapters.postgres.buckets import PostgresBuckets
    from outboxd.adapters.postgres.outbox import PostgresOutbox
    from outboxd.adapters.postgres.sessions import Sessions
    from outboxd.adapters.postgres.upkeep import PostgresUpkeep
    from outboxd.adapters.postgres.wake_ups import PostgresWakeUps

    settings = welcome.settings
    assert settings.relay is not None
    database = database_of(settings)
    schema = database.schema
    registry = CollectorRegistry()
    progress = Progress()
    sessions = Sessions(database, "outboxd relay")
    direct = msgspec.structs.replace(database, url=database.direct_url or database.url)
    listeners = Sessions(direct, "outboxd relay listener")
    destinations = relay_destinations(settings) if destinations is None else destinations
    relay = Relay(
        mailbox,
        settings.relay,
        identity=welcome.identity,
        predecessors=welcome.predecessors,
        buckets=PostgresBuckets(sessions, schema),
        outbox=PostgresOutbox(sessions, schema, keep_published=settings.relay.retention_days > 0),
        upkeep=PostgresUpkeep(sessions, schema),
        destinations=destinations,
        observer=RelayMetrics(registry, destinations),
        progress=progress,
        wake_ups=PostgresWakeUps(sessions, listeners, schema) if settings.relay.wake_up else None,
    )
    try:
        yield Assembled(_on_known_tables(relay, database), progress, _snapshots(registry))
    finally:
        await sessions.close()


@asynccontextmanager
async def _consumer(
    slot: Slot, welcome: Welcome, mailbox: Mailbox, log_of_process: Log
) -> AsyncIterator[Assembled]:
    from outboxd.actors.consumer import Consumer
    from outboxd.actors.consumer.timing import Timing
    from outboxd.adapters.conninfo import database_of
    from outboxd.adapters.handlers import Runner, extend_import_path, load_handlers
    from outboxd.adapters.known_suspects import KnownSuspects
    from outboxd.adapters.metrics.consumer import ConsumerMetrics
    from outboxd.adapters.metrics.user import PoolUserMetrics
    from outboxd.adapters.postgres.consumer_database import consumer_database
    from outboxd.adapters.receive_counts import ReceiveCounts
    from outboxd.adapters.sqs.queue import consumer_queue
    from outboxd.adapters.tracing import tracing
    from outboxd.producer import publish

    settings = welcome.settings
    queue = settings.queues[slot.queue]
    extend_import_path(settings.import_path)
    registry = CollectorRegistry()
    handlers = load_handlers(settings, slot.queue, PoolUserMetrics(registry, slot.queue))
    log_of_process.restore()
    progress = Progress()
    metrics = ConsumerMetrics(registry, slot.queue, queue, progress)
    async with AsyncExitStack() as stack:
        database = publisher = None
        if settings.database is not None:
            database = await stack.enter_async_context(
                consumer_database(database_of(settings), f"outboxd {slot.name}", slot.queue)
            )
            publisher = partial(publish, schema=settings.database.schema)
        runner = await stack.enter_async_context(
            tracing(
                Runner(
                    handlers, concurrency=queue.concurrency, database=database, publish=publisher
                ),
                settings.sqs_queue_name(slot.queue),
            )
        )
        suspects = KnownSuspects(queue.max_attempts) if database is None else database.suspects
        consumer = Consumer(
            slot.queue,
            queue,
            address=welcome.address,
            mailbox=mailbox,
            queue=consumer_queue(settings, slot.queue, metrics.called),
            runner=runner,
            inbox=ReceiveCounts() if database is None else database.inbox,
            suspects=suspects,
            inherited=welcome.suspects,
            processes=queue.processes,
            progress=progress,
            observer=metrics,
            timing=Timing(
                call_timeout_seconds=settings.aws.connect_timeout_seconds
                + settings.aws.read_timeout_seconds
            ),
        )
        actor: Actor = consumer
        if settings.database is not None and slot.number == 1:
            # Of each pool's processes one looks after the inbox, which they share.
            janitor = _inbox_janitor(slot.queue, settings, settings.database, registry, progress)
            actor = Accompanied(consumer, await stack.enter_async_context(janitor))
        actor = _on_known_tables(actor, settings.database)
        yield Assembled(actor, progress, _snapshots(registry))


@asynccontextmanager
async def _inbox_janitor(
    queue: str,
    settings: Settings,
    database: DatabaseSettings,
    registry: CollectorRegistry,
    progress: Progress,
) -> AsyncIterator[Actor]:
    from outboxd.actors.inbox_janitor import InboxJanitor
    from outboxd.adapters.metrics.inbox import InboxMetrics
    from outboxd.adapters.postgres.inbox_upkeep import PostgresInboxUpkeep
    from outboxd.adapters.postgres.sessions import Sessions
    from outboxd.adapters.sqs.retention import SqsQueueLife

    sessions = Sessions(database, "outboxd inbox janitor")
    try:
        yield InboxJanitor(
            queue,
            settings.inbox,
            upkeep=PostgresInboxUpkeep(sessions, database.schema),
            life=SqsQueueLife(settings, queue),
            last_receive_at=lambda: progress.last_receive_at,
            observer=InboxMetrics(registry, queue),
            dice=random.random,
        )
    finally:
        await sessions.close()


@asynccontextmanager
async def _extender(settings: Settings, mailbox: Mailbox) -> AsyncIterator[Assembled]:
    from outboxd.actors.extender import Extender, ExtenderSettings
    from outboxd.adapters.metrics.extender import ExtenderMetrics
    from outboxd.adapters.sqs.visibility import extender_visibility

    registry = CollectorRegistry()
    progress = Progress()
    limits = ExtenderSettings()
    extender = Extender(
        extender_visibility(settings, limits.calls_per_queue),
        limits,
        ExtenderMetrics(registry, settings.queues),
        progress,
        mailbox,
    )
    yield Assembled(extender, progress, _snapshots(registry))


def _on_known_tables(actor: Actor, database: DatabaseSettings | None) -> Actor:
    """The actor, which refuses tables of another version; without a database it has none."""
    if database is None:
        return actor
    from outboxd.adapters.migrations import Migrations
    from outboxd.resources import project_directory

    migrations = Migrations(
        database.url, database.schema, project_directory() / "migrations" / "outboxd"
    )
    return OnKnownTables(actor, partial(to_thread.run_sync, migrations.check_version))


def _snapshots(registry: CollectorRegistry) -> Callable[[], MetricsSnapshot]:
    sequence = count(1)
    return lambda: MetricsSnapshot(next(sequence), snapshot(registry))


def _log_as_accepted(settings: Settings) -> None:
    configure_logging(settings, "supervisor")


class Daemon:
    """The supervisor with its HTTP endpoint, bound and ready to run."""

    def __init__(
        self,
        settings: Settings,
        specs: Sequence[ChildSpec],
        configuration: Path,
        only: str | None = None,
    ) -> None:
        """`settings` are those of the file `configuration`, which a reload reads again; `only` is
        the part of them that is run here, as for `specs`."""
        from outboxd.adapters.metrics.exposition import Exposition
        from outboxd.adapters.metrics.supervisor import SupervisorMetrics
        from outboxd.supervision.configuration_file import ConfigurationFile
        from outboxd.supervision.control_socket import ControlSocket
        from outboxd.supervision.health import SupervisorHealth
        from outboxd.supervision.http import bind, create_app
        from outboxd.supervision.metrics import MetricsBook
        from outboxd.supervision.sd_notify import Notifier
        from outboxd.supervision.status.collecting import StatusWatch
        from outboxd.supervision.status.pages import StatusPages
        from outboxd.supervision.supervisor import Supervisor

        metrics = SupervisorMetrics((spec.name, spec.slot.kind) for spec in specs)
        book = MetricsBook(reserved=metrics.family_names())
        source = ConfigurationFile(
            configuration,
            only,
            _log_as_accepted,
            seconds=settings.supervisor.start_deadline_seconds,
        )
        self._supervisor = Supervisor(settings, specs, metrics, book, Notifier(), source=source)
        exposition = Exposition(metrics.registry, book.families)
        health = SupervisorHealth(self._supervisor)
        self._status = StatusWatch(self._supervisor, health, exposition.lines)
        self._app = create_app(exposition.render, health, StatusPages(self._status.now))
        self._socket = bind(settings.http.host, settings.http.port)
        path = settings.supervisor.control_socket
        self._control = ControlSocket(path) if path is not None else None

    async def run(self) -> ExitCode:
        """Run until a stop; the exit code says why it ended."""
        return await self._supervisor.run(self._serve)

    async def _serve(self) -> None:
        from outboxd.supervision.control import serve_control
        from outboxd.supervision.http import serve

        host, port = self._socket.getsockname()[:2]
        log.info("listening", extra={"address": f"http://{host}:{port}"})
        async with create_task_group() as tasks:
            if self._control is not None:
                tasks.start_soon(serve_control, self._control, self._supervisor)
            tasks.start_soon(self._status.run)
            await serve(self._app, self._socket)
