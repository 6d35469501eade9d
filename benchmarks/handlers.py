"""The handlers that the daemon runs while it is measured."""

import psycopg

from benchmarks.workload import Payload
from outboxd import Event

EFFECT = "INSERT INTO public.effects (event_id, number) VALUES (%s, %s)"

EFFECTS = """
    INSERT INTO public.effects (event_id, number)
    SELECT * FROM unnest(%s::uuid[], %s::integer[])
"""


def ignore(event: Event[Payload]) -> None:
    """Do nothing, so that what is left is the daemon."""


def effect(event: Event[Payload], tx: psycopg.Connection) -> None:
    """One insert, in the transaction that marks the event as processed."""
    tx.execute(EFFECT, [event.id, event.payload.number])


def effects(events: list[Event[Payload]], tx: psycopg.Connection) -> None:
    """The same for a batch, in one statement."""
    tx.execute(EFFECTS, [[e.id for e in events], [e.payload.number for e in events]])
