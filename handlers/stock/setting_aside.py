"""Pieces are set aside for an order: all that it has, or none."""

from uuid import UUID

import psycopg

from handlers.events import StockReserved, order_event
from handlers.stock.shelves import (
    add_reservations,
    carry_out,
    lock_available,
    lock_known_standing,
    wanted_by,
)
from handlers.stock.standings import SELL, SET_ASIDE, Shortage, Standing, shortage
from outboxd import publish

HAS_PAYMENT = "SELECT EXISTS (SELECT FROM shop.payments WHERE order_id = %s)"


def set_aside(tx: psycopg.Connection, order_id: UUID) -> Shortage | None:
    """Set aside all that the order has, and publish `stock.reserved` for each article; or nothing,
    and return the first article of which there is too little. The caller holds the standing."""
    wanted = wanted_by(tx, order_id)
    short = shortage(wanted, lock_available(tx, wanted))
    if short is not None:
        return short
    reservations = add_reservations(tx, order_id, wanted)
    carry_out(tx, order_id, SET_ASIDE)
    for reservation_id, sku, quantity in reservations:
        reserved = StockReserved(
            order_id=order_id, reservation_id=reservation_id, sku=sku, quantity=quantity
        )
        publish(tx, order_event(reserved))
    return None


def reconsider(connection: psycopg.Connection, order_id: UUID) -> bool:
    """For somebody who has brought in the goods of an order that was rejected: set them aside after
    all, in one transaction. If a payment has come for it they are sold, as `commit` would have
    done; what waits for that in the dead letters can be redriven.

    False if there is still too little, or the order was not rejected.
    """
    with connection.transaction():
        if lock_known_standing(connection, order_id) is not Standing.REJECTED:
            return False
        if set_aside(connection, order_id) is not None:
            return False
        # After the lock: a `commit` that came before it has found the order rejected, and one that
        # comes later finds it reserved or sold.
        ((paid,),) = connection.execute(HAS_PAYMENT, (order_id,)).fetchall()
        if paid:
            carry_out(connection, order_id, SELL)
        return True
