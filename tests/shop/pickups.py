"""What tests ask of a pickup: the handler's outcome, and what the courier has in its books."""

from uuid import UUID

import psycopg

from handlers.events import PaymentSucceeded
from handlers.shipping import REQUEST_PICKUP, RequestPickup
from outboxd import Event
from outboxd.core.outcomes import Outcome
from outboxd.demo.partners import Partners
from outboxd.demo.partners.book import Service
from outboxd.testing import run
from tests.shop.parties import statuses


def pick_up(
    handler: RequestPickup, event: Event[PaymentSucceeded], timeout_seconds: float = 30.0
) -> Outcome:
    return run(handler, event, inbox="own", name=REQUEST_PICKUP, timeout_seconds=timeout_seconds)


def asked(partners: Partners, order_id: UUID) -> list[int]:
    """How each request for this order ended; all of them had its idempotency key."""
    return statuses(partners, Service.COURIER, f"pickup:{order_id}")


def parcels_of(partners: Partners, order_id: UUID) -> int:
    """How many the courier has accepted, under whatever key."""
    content = {"order_id": str(order_id)}
    return sum(each.content == content for each in partners.accepted(Service.COURIER))


def calls(partners: Partners) -> int:
    """How many requests the courier has seen so far."""
    return partners.counts()[Service.COURIER].requests


def shipments(shop: psycopg.Connection) -> list[tuple[bool, int]]:
    """Of each shipment, whether the courier has confirmed it, and how often it was asked."""
    rows = shop.execute("SELECT tracking_number IS NOT NULL, calls FROM shop.shipments")
    return rows.fetchall()
