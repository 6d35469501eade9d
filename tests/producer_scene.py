"""Events to publish, and what a producer has stored."""

from typing import Any

import msgspec
import psycopg

from outboxd.core.events import NewEvent


class Placed(msgspec.Struct):
    order_id: str
    amount_cents: int


def an_event(payload: Any = None, **changes: Any) -> NewEvent:
    values: dict[str, Any] = {
        "type": "order.placed",
        "aggregate_type": "order",
        "aggregate_id": "o-1",
        "payload": Placed("o-1", 1250) if payload is None else payload,
    }
    return NewEvent(**{**values, **changes})


def stored(dsn: str) -> list[tuple[Any, ...]]:
    """Committed events: id, type, aggregate, payload and headers, in their order."""
    return rows(
        dsn,
        "SELECT id, event_type, aggregate_type, aggregate_id, payload, headers"
        "  FROM outboxd.outbox_events ORDER BY seq",
    )


def payloads(dsn: str) -> list[Any]:
    return [row[4] for row in stored(dsn)]


def rows(dsn: str, query: str, *parameters: object) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(query.encode(), parameters)
        return cursor.fetchall() if cursor.description else []
