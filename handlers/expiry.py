"""Orders that nobody pays for: what they have set aside is for sale again."""

from datetime import timedelta
from uuid import UUID

import psycopg

from handlers.orders import cancel_order

FIND_UNPAID = """
    SELECT id
      FROM shop.orders
     WHERE status = 'pending'
       AND created_at < clock_timestamp() - %(older_than)s
       AND NOT EXISTS (SELECT FROM shop.payments WHERE payments.order_id = orders.id)
     ORDER BY created_at
     LIMIT %(limit)s
"""

LOCK_PENDING = "SELECT FROM shop.orders WHERE id = %s AND status = 'pending' FOR UPDATE"

HAS_PAYMENT = "SELECT EXISTS (SELECT FROM shop.payments WHERE order_id = %s)"

UNPAID = "it was not paid in time"


def expire_unpaid(
    connection: psycopg.Connection, older_than: timedelta, limit: int = 100
) -> list[UUID]:
    """Cancel the oldest orders that were made longer ago than this and that nothing was paid for;
    at most so many, and which. On a connection in autocommit each is a transaction of its own.

    To be called by a cron job, until it returns nothing; a payment that comes later is given back.
    An order that any payment has come for is left alone: `payment.mark_paid` has not seen it yet,
    or has dead-lettered it, and then somebody decides.
    """
    parameters = {"older_than": older_than, "limit": limit}
    found = connection.execute(FIND_UNPAID, parameters).fetchall()
    return [order_id for (order_id,) in found if _expire(connection, order_id)]


def _expire(connection: psycopg.Connection, order_id: UUID) -> bool:
    with connection.transaction():
        if connection.execute(LOCK_PENDING, (order_id,)).fetchone() is None:
            return False
        # After the lock, which a payment that is being stored makes us wait for.
        ((paid,),) = connection.execute(HAS_PAYMENT, (order_id,)).fetchall()
        return False if paid else cancel_order(connection, order_id, UNPAID)
