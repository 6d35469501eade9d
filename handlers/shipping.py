"""Shipping: the courier is asked to fetch what has been paid for.

The pattern for every call to somebody else's system, a warehouse or a search index as well: look
and store the intent, call without a transaction, then store what came of it together with the
inbox mark. Without the intent an order that is cancelled during the call, or after one whose answer
was lost, would be given back and sent as well.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, assert_never
from uuid import UUID

import msgspec
import psycopg
from msgspec import Meta, Struct

from handlers.connections import LOCK_LIMIT, STORE_SECONDS, shop_pool
from handlers.effects import record_effect
from handlers.events import (
    NotificationRequested,
    PaymentSucceeded,
    ShipmentRequested,
    order_event,
)
from handlers.partners import Partner, PartnerAway, PartnerOptions
from handlers.shipments import Needed, NotNeeded, intend, store_answer, withdraw
from outboxd import Context, Event, NewEvent, Reject, publish_many

REQUEST_PICKUP = "shipping.request_pickup"
"""This handler's name in the configuration."""


class Pickup(Struct, frozen=True):
    """The courier's answer; what else it says is not ours to know."""

    tracking_number: Annotated[str, Meta(min_length=1, max_length=255)]


class RequestPickup:
    """Asks the courier to fetch a paid order whose goods are sold.

    Registered with `inbox = "own"`: the shipment, the events that tell of it and the inbox mark
    are one transaction, after the call. A crash in between repeats the call with the same key,
    which the courier recognises. The key is the order's and not the event's: there is one parcel
    for an order, however many payments tell of it.
    """

    def __init__(
        self,
        *,
        base_url: str,
        database_url: str,
        timeout_seconds: float | str = 10.0,
        token: str | None = None,
    ) -> None:
        options = {"base_url": base_url, "timeout_seconds": timeout_seconds, "token": token}
        # Not strict: what comes from the environment is a text.
        self._courier = Partner(
            "the courier", msgspec.convert(options, PartnerOptions, strict=False)
        )
        self._pool = shop_pool(database_url, REQUEST_PICKUP)

    def __call__(self, event: Event[PaymentSucceeded], context: Context) -> None:
        with self._transaction() as connection:
            need = intend(connection, event.payload)
            if isinstance(need, NotNeeded):
                context.claim(connection)
        match need:
            case NotNeeded(reason=reason):
                context.logger.info("no pickup requested", extra={"reason": reason})
            case Needed(customer_id=customer_id):
                pickup = self._request(event.payload.order_id, context)
                self._store(event, customer_id, pickup, context)
            case _:
                assert_never(need)

    def close(self) -> None:
        """Close its connections; for tests, as a handler lives as long as its process."""
        self._courier.close()
        self._pool.close()

    def _request(self, order_id: UUID, context: Context) -> Pickup:
        try:
            answer = self._courier.post(
                "/pickups",
                {"order_id": str(order_id)},
                key=f"pickup:{order_id}",
                seconds_left=context.seconds_left() - STORE_SECONDS,
            )
        except Reject as refused:
            raise self._refused(order_id, refused) from refused
        try:
            return msgspec.json.decode(answer, type=Pickup)
        except msgspec.MsgspecError as error:
            # It may have accepted; with the same key it can say so again, and better.
            raise PartnerAway(f"the courier's answer cannot be understood: {error}") from error

    def _refused(self, order_id: UUID, refused: Reject) -> Reject:
        """The refusal, and what it leaves open: a call before it may have been accepted."""
        with self._transaction() as connection:
            if withdraw(connection, order_id):
                return refused
        return Reject(
            f"{refused}; an earlier call was not answered, so ask the courier whether it has order "
            f"{order_id}: redrive this if it has, else handlers.shipments.give_up_pickup"
        )

    def _store(
        self,
        event: Event[PaymentSucceeded],
        customer_id: UUID,
        pickup: Pickup,
        context: Context,
    ) -> None:
        order_id = event.payload.order_id
        with self._transaction() as connection:
            if not context.claim(connection):
                return
            shipment_id = store_answer(connection, order_id, pickup.tracking_number)
            if shipment_id is None:
                return
            shipment = ShipmentRequested(
                order_id=order_id,
                shipment_id=shipment_id,
                tracking_number=pickup.tracking_number,
            )
            publish_many(connection, _told(shipment, customer_id))
            record_effect(connection, event.id, REQUEST_PICKUP)

    @contextmanager
    def _transaction(self) -> Iterator[psycopg.Connection]:
        with self._pool.connection() as connection, connection.transaction():
            connection.execute(LOCK_LIMIT)
            yield connection


def _told(shipment: ShipmentRequested, customer_id: UUID) -> list[NewEvent]:
    message = NotificationRequested(
        channel="push", template="shipped", customer_id=customer_id, order_id=shipment.order_id
    )
    return [order_event(shipment), order_event(message)]
