"""One handler for every road: it writes down which event reached whom, in which order."""

from typing import Any

import psycopg

from outboxd import Context, Event

ARRIVED = """
    INSERT INTO public.arrivals (event_id, handler, aggregate, number) VALUES (%s, %s, %s, %s)
"""


def arrived(event: Event[Any], tx: psycopg.Connection, context: Context) -> None:
    number = event.payload["number"]
    tx.execute(ARRIVED, [event.id, context.handler, event.aggregate_id, number])
