"""Handlers for the system tests. Each appends what it did to a table without any uniqueness, so
that nothing which happens twice can hide."""

import ctypes
import time
from typing import Any

import msgspec
import psycopg

from outboxd import Context, Event, Reject


class Work(msgspec.Struct):
    """What a test asks a handler to do."""

    seconds: float = 0.0


def note(event: Event[Work], tx: psycopg.Connection) -> None:
    _record(tx, event, "note")


def sleep(event: Event[Work], tx: psycopg.Connection) -> None:
    _record(tx, event, "sleep")
    time.sleep(event.payload.seconds)


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
