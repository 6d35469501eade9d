"""Handlers for the system tests. Each appends what it did to a table without any uniqueness, so
that nothing which happens twice can hide."""

import ctypes
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import anyio
import msgspec
import psycopg

from outboxd import Context, Event, Reject

_leaked: list[bytes] = []


class Work(msgspec.Struct):
    """What a test asks a handler to do."""

    seconds: float = 0.0
    folder: str = ""


def note(event: Event[Work], tx: psycopg.Connection) -> None:
    _record(tx, event, "note")


def counted(event: Event[Work], tx: psycopg.Connection, context: Context) -> None:
    """Counts itself, also in ways that are refused."""
    _record(tx, event, "counted")
    context.metrics.counter("shop_notes", "Notes taken", kind="plain").inc()
    context.metrics.counter("outboxd_published", "Not for handlers").inc()


def sleep(event: Event[Work], tx: psycopg.Connection) -> None:
    _record(tx, event, "sleep")
    time.sleep(event.payload.seconds)


async def sleep_async(event: Event[Work], tx: psycopg.AsyncConnection) -> None:
    await anyio.sleep(event.payload.seconds)
    await tx.execute(
        "INSERT INTO public.effects (event_id, handler) VALUES (%s, 'sleep_async')", [event.id]
    )


def sleep_once(event: Event[Work], tx: psycopg.Connection) -> None:
    """Sleeps only the first time that it is called with an event, whatever became of that call."""
    _record(tx, event, "sleep_once")
    mark = Path(event.payload.folder, str(event.id))
    if not mark.exists():
        mark.touch()
        time.sleep(event.payload.seconds)


def kill(event: Event[Work]) -> None:
    """Takes its process along."""
    os.kill(os.getpid(), signal.SIGKILL)


def leave(event: Event[Work]) -> None:
    """Ends its process in a way that no `finally` and no handler of exceptions sees."""
    os._exit(1)


def hang(event: Event[Work], tx: psycopg.Connection) -> None:
    _record(tx, event, "hang")
    time.sleep(3600)


def fatten(event: Event[Work], tx: psycopg.Connection) -> None:
    """Leaks eight megabytes."""
    _record(tx, event, "fatten")
    _leaked.append(b"x" * 8_000_000)


def hold_the_gil(event: Event[Work], tx: psycopg.Connection) -> None:
    """A C call that does not let go of the interpreter lock: no thread and no task runs beside."""
    _record(tx, event, "hold_the_gil")
    ctypes.PyDLL(None).sleep(int(event.payload.seconds))


def reject(event: Event[Work]) -> None:
    raise Reject("no such customer: 42")


def fail(event: Event[Work], context: Context) -> None:
    raise ZeroDivisionError(f"attempt {context.attempt} always fails")


def _record(tx: psycopg.Connection, event: Event[Any], handler: str) -> None:
    tx.execute(
        "INSERT INTO public.effects (event_id, handler) VALUES (%s, %s)", [event.id, handler]
    )


def orphan(event: Event[Work], tx: psycopg.Connection) -> None:
    """Leaves a grandchild behind, which ends a moment after its parent."""
    subprocess.run(["sh", "-c", "sleep 0.3 &"], check=True)
    _record(tx, event, "orphan")
