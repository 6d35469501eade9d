"""Handlers for the chaos test. Each appends what it did to a table without any uniqueness, so that
nothing which happens twice can hide."""

import os
import signal
import time

import anyio
import msgspec
import psycopg

from outboxd import Context, Event, NewEvent, Reject

RECORD = """
    INSERT INTO public.effects (event_id, handler, pid, aggregate, position)
    VALUES (%(event_id)s, %(handler)s, %(pid)s, %(aggregate)s, %(position)s)
"""


class Work(msgspec.Struct):
    """What a handler is to do: take `seconds`, fail in its first `failures` attempts. `position`
    counts the events of one aggregate."""

    seconds: float = 0.0
    failures: int = 0
    position: int = 0


def fast_sync(event: Event[Work], tx: psycopg.Connection) -> None:
    tx.execute(RECORD, row(event, "fast_sync"))


async def fast_async(event: Event[Work], tx: psycopg.AsyncConnection) -> None:
    await tx.execute(RECORD, row(event, "fast_async"))


def slow_sync(event: Event[Work], tx: psycopg.Connection) -> None:
    tx.execute(RECORD, row(event, "slow_sync"))
    time.sleep(event.payload.seconds)


async def slow_async(event: Event[Work], tx: psycopg.AsyncConnection) -> None:
    await tx.execute(RECORD, row(event, "slow_async"))
    await anyio.sleep(event.payload.seconds)


def flaky(event: Event[Work], tx: psycopg.Connection, context: Context) -> None:
    tx.execute(RECORD, row(event, "flaky"))
    fail_at_first(event, context)


def two_first(event: Event[Work], tx: psycopg.Connection) -> None:
    tx.execute(RECORD, row(event, "two_first"))


async def two_second(event: Event[Work], tx: psycopg.AsyncConnection, context: Context) -> None:
    await tx.execute(RECORD, row(event, "two_second"))
    fail_at_first(event, context)


def parent(event: Event[Work], tx: psycopg.Connection, context: Context) -> None:
    """Publishes one event in its own transaction: as many children as parents, or one is wrong."""
    tx.execute(RECORD, row(event, "parent"))
    context.publish(NewEvent("child", "parent", str(event.id), Work()))


async def child(event: Event[Work], tx: psycopg.AsyncConnection) -> None:
    await tx.execute(RECORD, row(event, "child"))


def ordered(event: Event[Work], tx: psycopg.Connection, context: Context) -> None:
    tx.execute(RECORD, row(event, "ordered"))
    fail_at_first(event, context)


class After:
    """An effect outside of the database, like a mail: one line in a file."""

    def __init__(self, path: str) -> None:
        # In one write each, which O_APPEND keeps whole between processes.
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def __call__(self, event: Event[Work]) -> None:
        os.write(self._file, f"{event.id}\n".encode())


def half_good(event: Event[Work], tx: psycopg.Connection) -> None:
    tx.execute(RECORD, row(event, "half_good"))


def half_bad(event: Event[Work], tx: psycopg.Connection) -> None:
    tx.execute(RECORD, row(event, "half_bad"))
    raise Reject("the other half is good")


def reject(event: Event[Work], tx: psycopg.Connection) -> None:
    tx.execute(RECORD, row(event, "reject"))
    raise Reject("no such customer")


def fail(event: Event[Work], tx: psycopg.Connection, context: Context) -> None:
    tx.execute(RECORD, row(event, "fail"))
    raise ZeroDivisionError(f"attempt {context.attempt} always fails")


def crash(event: Event[Work], tx: psycopg.Connection) -> None:
    tx.execute(RECORD, row(event, "crash"))
    os.kill(os.getpid(), signal.SIGKILL)


def hang(event: Event[Work], tx: psycopg.Connection) -> None:
    tx.execute(RECORD, row(event, "hang"))
    time.sleep(event.payload.seconds)


def fail_at_first(event: Event[Work], context: Context) -> None:
    if context.attempt <= event.payload.failures:
        raise ConnectionRefusedError(f"attempt {context.attempt} fails")


def row(event: Event[Work], handler: str) -> dict[str, object]:
    return {
        "event_id": event.id,
        "handler": handler,
        "pid": os.getpid(),
        "aggregate": event.aggregate_id,
        "position": event.payload.position,
    }
