"""The handlers that the daemon runs while it is measured."""

import psycopg

from benchmarks.workload import Payload
from outboxd import Event


def ignore(event: Event[Payload]) -> None:
    """Do nothing, so that what is left is the daemon."""


def effect(event: Event[Payload], tx: psycopg.Connection) -> None:
    """One insert, in the transaction that marks the event as processed."""
    tx.execute(
        "INSERT INTO public.effects (event_id, number) VALUES (%s, %s)",
        [event.id, event.payload.number],
    )
