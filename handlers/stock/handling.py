"""The handlers of the stock: each locks the order's standing, decides, and carries that out."""

from typing import assert_never
from uuid import UUID

import psycopg

from handlers.effects import record_effect
from handlers.events import (
    OrderCancelled,
    OrderCreated,
    PaymentSucceeded,
    StockRejected,
    order_event,
)
from handlers.stock.setting_aside import set_aside
from handlers.stock.shelves import carry_out, lock_standing
from handlers.stock.standings import (
    REJECT,
    Choose,
    Keep,
    Move,
    PaidInVain,
    Wait,
    on_cancelled,
    on_created,
    on_paid,
)
from handlers.waiting import later
from outboxd import Context, Event, publish

RESERVE = "stock.reserve"
RELEASE = "stock.release"
COMMIT = "stock.commit"
"""These handlers' names in the configuration."""


def reserve(event: Event[OrderCreated], tx: psycopg.Connection) -> None:
    """Set aside all that the order has, and publish `stock.reserved` for each article; or nothing,
    and publish one `stock.rejected` for the first of which there is too little.

    Nothing else follows from a rejection here, and nothing of this shop listens to it: it goes to
    the bus, for the system of whoever buys goods, or talks to customers. There somebody cancels the
    order with `handlers.orders.cancel_order`, or brings in goods and calls `reconsider`.
    """
    order_id = event.payload.order_id
    match on_created(lock_standing(tx, order_id)):
        case Choose():
            _set_aside_or_reject(tx, order_id)
        case Keep():
            return
        case decision:
            assert_never(decision)
    record_effect(tx, event.id, RESERVE)


def release(event: Event[OrderCancelled], tx: psycopg.Connection) -> None:
    """Give back what the order had set aside or bought. If it comes before `reserve`, its row in
    `shop.order_stock` keeps the late one from setting anything aside."""
    order_id = event.payload.order_id
    match on_cancelled(lock_standing(tx, order_id)):
        case Move() as decision:
            carry_out(tx, order_id, decision)
        case Keep():
            return
        case decision:
            assert_never(decision)
    record_effect(tx, event.id, RELEASE)


def commit(event: Event[PaymentSucceeded], tx: psycopg.Connection, context: Context) -> None:
    """Take what was set aside off the shelf: it is sold. Until it is set aside, wait.

    A payment for an order that was rejected is done here, with a warning: the shop owes goods that
    it does not have, and `shipping.request_pickup` dead-letters it. Whoever acts on that cancels
    the order, which gives the money back, or brings in goods and calls `reconsider`.

    Whether the payment fits its order is for `payment.mark_paid` to say. If it does not, the pieces
    are kept for the customer all the same until somebody cancels.
    """
    order_id = event.payload.order_id
    match on_paid(lock_standing(tx, order_id)):
        case Move() as decision:
            carry_out(tx, order_id, decision)
            record_effect(tx, event.id, COMMIT)
        case Wait():
            raise later(f"nothing is set aside for order {order_id} yet", context)
        case PaidInVain():
            context.logger.warning(
                "an order was paid whose stock was rejected: cancel it, or find the goods",
                extra={"order_id": str(order_id), "payment_id": str(event.payload.payment_id)},
            )
        case Keep():
            return
        case decision:
            assert_never(decision)


def _set_aside_or_reject(tx: psycopg.Connection, order_id: UUID) -> None:
    short = set_aside(tx, order_id)
    if short is None:
        return
    carry_out(tx, order_id, REJECT)
    rejected = StockRejected(
        order_id=order_id, sku=short.sku, wanted=short.wanted, available=short.available
    )
    publish(tx, order_event(rejected))
