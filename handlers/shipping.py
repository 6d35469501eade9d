"""Shipping: the courier is asked to fetch what has been paid for.

The pattern for every call to somebody else's system, a warehouse or a search index as well:
look, call without a transaction, then store what came of it together with the inbox mark.
"""

from typing import Annotated, assert_never
from uuid import UUID, uuid4

import msgspec
import psycopg
from msgspec import Meta, Struct

from handlers.connections import shop_pool
from handlers.effects import record_effect
from handlers.events import (
    NotificationRequested,
    PaymentSucceeded,
    ShipmentRequested,
    order_event,
)
from handlers.partners import Partner, PartnerAway, PartnerOptions
from outboxd import Context, Event, NewEvent, Reject, publish_many

REQUEST_PICKUP = "shipping.request_pickup"
"""This handler's name in the configuration."""

LOOK = """
    SELECT orders.customer_id, orders.status, orders.paid_by, shipments.id IS NOT NULL
      FROM shop.orders
      LEFT JOIN shop.shipments ON shipments.order_id = orders.id
     WHERE orders.id = %s
"""

INSERT_SHIPMENT = """
    INSERT INTO shop.shipments (id, order_id, tracking_number)
    VALUES (%(shipment_id)s, %(order_id)s, %(tracking_number)s)
    ON CONFLICT (order_id) DO NOTHING
    RETURNING id
"""


class Pickup(Struct, frozen=True):
    """The courier's answer; what else it says is not ours to know."""

    tracking_number: Annotated[str, Meta(min_length=1, max_length=255)]


class NotPaidYet(Exception):
    """The order is not marked as paid: that comes soon, or the payment was refused."""


class Needed(Struct, frozen=True):
    """The parcel of an order waits to be fetched."""

    customer_id: UUID


class NotNeeded(Struct, frozen=True):
    """Nothing is to be fetched, and why."""

    reason: str


class RequestPickup:
    """Asks the courier to fetch a paid order.

    Registered with `inbox = "own"`: the shipment, the events that tell of it and the inbox mark
    are one transaction, after the call. A crash in between repeats the call with the same key,
    which the courier recognises.
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
        order_id = event.payload.order_id
        need = self._look(event.payload)
        match need:
            case NotNeeded(reason=reason):
                self._claim(context)
                context.logger.info("no pickup requested", extra={"reason": reason})
            case Needed(customer_id=customer_id):
                pickup = self._request(order_id, context)
                self._store(event, customer_id, pickup, context)
            case _:
                assert_never(need)

    def close(self) -> None:
        """Close its connections; for tests, as a handler lives as long as its process."""
        self._courier.close()
        self._pool.close()

    def _look(self, payment: PaymentSucceeded) -> Needed | NotNeeded:
        with self._pool.connection() as connection:
            row = connection.execute(LOOK, (payment.order_id,)).fetchone()
        if row is None:
            raise Reject(f"there is no order {payment.order_id}: nothing can be shipped")
        return needed(payment, *row)

    def _claim(self, context: Context) -> None:
        with self._pool.connection() as connection, connection.transaction():
            context.claim(connection)

    def _request(self, order_id: UUID, context: Context) -> Pickup:
        answer = self._courier.post(
            "/pickups",
            {"order_id": str(order_id)},
            key=context.idempotency_key,
            seconds_left=context.seconds_left(),
        )
        try:
            return msgspec.json.decode(answer, type=Pickup)
        except msgspec.MsgspecError as error:
            # It may have accepted; with the same key it can say so again, and better.
            raise PartnerAway(f"the courier's answer cannot be understood: {error}") from error

    def _store(
        self,
        event: Event[PaymentSucceeded],
        customer_id: UUID,
        pickup: Pickup,
        context: Context,
    ) -> None:
        with self._pool.connection() as connection, connection.transaction():
            if not context.claim(connection):
                return
            shipment = ShipmentRequested(
                order_id=event.payload.order_id,
                shipment_id=uuid4(),
                tracking_number=pickup.tracking_number,
            )
            if _insert(connection, shipment):
                publish_many(connection, _told(shipment, customer_id))
                record_effect(connection, event.id, REQUEST_PICKUP)


def needed(
    payment: PaymentSucceeded, customer_id: UUID, status: str, paid_by: UUID | None, shipped: bool
) -> Needed | NotNeeded:
    """Whether an order in this state is to be fetched for this payment. Raises NotPaidYet."""
    order_id = payment.order_id
    if shipped:
        return NotNeeded(f"order {order_id} has its shipment already")
    if status == "cancelled":
        return NotNeeded(f"order {order_id} is cancelled")
    if status != "paid":
        # A payment alone is not enough: its amount may be wrong, which payment.mark_paid finds out.
        raise NotPaidYet(
            f"order {order_id} is {status}: its payment has not been applied yet, or was refused"
        )
    if paid_by not in (None, payment.payment_id):
        # Each event has a key of its own: the courier would take the second one for a new parcel.
        return NotNeeded(f"order {order_id} is paid by another payment, {paid_by}")
    return Needed(customer_id)


def _insert(connection: psycopg.Connection, shipment: ShipmentRequested) -> bool:
    """Whether the shipment is the order's first."""
    parameters = msgspec.structs.asdict(shipment)
    return connection.execute(INSERT_SHIPMENT, parameters).fetchone() is not None


def _told(shipment: ShipmentRequested, customer_id: UUID) -> list[NewEvent]:
    message = NotificationRequested(
        channel="push", template="shipped", customer_id=customer_id, order_id=shipment.order_id
    )
    return [order_event(shipment), order_event(message)]
