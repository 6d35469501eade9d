"""Publishes what is in the outbox as the daemon would, into lists instead of into AWS."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import psycopg
from psycopg import sql

from outboxd.adapters.configuration import load_settings
from outboxd.adapters.memory_destination import Delivered, MemoryDestination
from outboxd.assembly import assembled_relay
from outboxd.channels.mailbox import open_mailbox
from outboxd.channels.protocol import Address, Drain, Welcome
from outboxd.core.clock import boottime
from outboxd.core.errors import SettingsError
from outboxd.core.routes import RouteTable
from outboxd.core.settings import DatabaseSettings, Settings

DRAIN_SECONDS = 5.0
LOOK_SECONDS = 0.02

PENDING = sql.SQL("""
    SELECT DISTINCT event_type, aggregate_type
      FROM {}
     WHERE published_at IS NULL AND dead_at IS NULL
""")


def relay_pending(
    config: str | os.PathLike[str],
    environ: Mapping[str, str] | None = None,
    *,
    timeout_seconds: float = 10.0,
) -> dict[str, list[Delivered]]:
    """Publish every committed event of the outbox that has a route, and say where each one went.

    The routes and the database are those of the configuration; each destination that a route names,
    of whatever kind, is a list here, in the order in which a reader could get its events. Rows are
    marked as published, as ever. Events that no route matches are left or marked as `on_unrouted`
    says. `environ` is for references in the file, os.environ by default.

    Raises SettingsError for a configuration that cannot be used, and TimeoutError when events are
    still pending after `timeout_seconds`: when a daemon works on the same outbox, for one.
    """
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        return runner.run(relay_pending_async(config, environ, timeout_seconds=timeout_seconds))


async def relay_pending_async(
    config: str | os.PathLike[str],
    environ: Mapping[str, str] | None = None,
    *,
    timeout_seconds: float = 10.0,
) -> dict[str, list[Delivered]]:
    """`relay_pending` for tests that are asynchronous themselves."""
    settings = load_settings(Path(config), os.environ if environ is None else environ)
    if settings.relay is None or settings.database is None:
        raise SettingsError([f"{config}: [relay]: missing; it says what goes where"])
    routes = RouteTable(settings.relay.routes)
    destinations = {
        name: MemoryDestination(cloudevents_source=settings.relay.cloudevents_source)
        for name in routes.destinations
    }
    await _relayed(settings, settings.database, routes, destinations, timeout_seconds)
    return {name: destination.delivered for name, destination in destinations.items()}


async def _relayed(
    settings: Settings,
    database: DatabaseSettings,
    routes: RouteTable,
    destinations: Mapping[str, MemoryDestination],
    timeout_seconds: float,
) -> None:
    mailbox, counterpart = open_mailbox()
    welcome = Welcome(settings, Address("relay", 1), uuid4())
    try:
        async with (
            assembled_relay(welcome, mailbox, destinations) as assembled,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(assembled.actor.run)
            with anyio.move_on_after(timeout_seconds) as waiting:
                await _all_published(database, routes)
            # A drain gives its share of the outbox back, so that the next one need not wait for it.
            await counterpart.tell(Drain(boottime() + DRAIN_SECONDS))
    finally:
        counterpart.close()
        mailbox.close()
    if waiting.cancelled_caught:
        raise TimeoutError(
            f"events are still pending in the outbox after {timeout_seconds:g} s; does a daemon "
            "work on the same database?"
        )


async def _all_published(database: DatabaseSettings, routes: RouteTable) -> None:
    table = sql.Identifier(database.schema, "outbox_events")
    pending = True
    while pending:
        await anyio.sleep(LOOK_SECONDS)
        pending = await anyio.to_thread.run_sync(_routed_pending, database.url, table, routes)


def _routed_pending(url: str, table: sql.Identifier, routes: RouteTable) -> bool:
    with psycopg.connect(url, autocommit=True) as connection:
        rows: list[tuple[Any, ...]] = connection.execute(PENDING.format(table)).fetchall()
    return any(routes.find(*row) is not None for row in rows)
