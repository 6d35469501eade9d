"""Handlers behind a connection pooler, of every kind that touches the database."""

import os
from typing import Any

import anyio
import psycopg

from outboxd import Context, Event

EFFECT = "INSERT INTO public.effects (event_id, handler) VALUES (%s, %s)"

# Asked like that, it is the same statement again and again: with prepared statements it would be
# prepared on a server that the next transaction does not get.
LIMITS = """
    INSERT INTO public.limits (moment, name, setting)
    SELECT %s, name, setting
      FROM pg_settings
     WHERE name IN ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout')
"""


def in_thread(event: Event[Any], tx: psycopg.Connection) -> None:
    for _ in range(3):
        tx.execute(LIMITS, ["handler"])
    tx.execute(EFFECT, [event.id, "in_thread"])


async def in_loop(event: Event[Any], tx: psycopg.AsyncConnection) -> None:
    await tx.execute(EFFECT, [event.id, "in_loop"])
    await anyio.sleep(0.01)


def in_batch(events: list[Event[Any]], tx: psycopg.Connection) -> None:
    for event in events:
        tx.execute(EFFECT, [event.id, "in_batch"])


def in_own(event: Event[Any], context: Context) -> None:
    """Connects for each event, as an application without a pool of its own would."""
    with psycopg.connect(os.environ["POOLED_DSN"], prepare_threshold=None) as connection:
        if context.claim(connection):
            connection.execute(EFFECT, [event.id, "in_own"])
