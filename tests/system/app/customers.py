"""A handler that rejects what it does not know, until somebody mends the data."""

import psycopg

from outboxd import Event, Reject


def register(event: Event[dict[str, str]], tx: psycopg.Connection) -> None:
    """Rejects an event of a customer that is in no row of `customers`."""
    name = event.payload["name"]
    if tx.execute("SELECT 1 FROM public.customers WHERE name = %s", [name]).fetchone() is None:
        raise Reject(f"no such customer: {name}")
    tx.execute("INSERT INTO public.effects (event_id, handler) VALUES (%s, 'register')", [event.id])
