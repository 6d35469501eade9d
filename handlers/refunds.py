"""Money to give back: noted and told of once for each payment."""

from uuid import UUID

import psycopg

from handlers.events import PaymentRefundDue, order_event
from outboxd import publish

INSERT_REFUND = """
    INSERT INTO shop.refunds (payment_id, order_id, amount_minor, currency, reason)
    SELECT id, order_id, amount_minor, currency, %(reason)s
      FROM shop.payments
     WHERE id = %(payment_id)s
    ON CONFLICT (payment_id) DO NOTHING
    RETURNING order_id, amount_minor
"""

FIND_REFUND = "SELECT order_id FROM shop.refunds WHERE payment_id = %s"

ORDER_CANCELLED = "the order is cancelled"
PAID_BY_ANOTHER = "the order is paid by another payment"


class UnknownPayment(Exception):
    """No such payment (yet), so nobody can tell how much to give back: try again."""


def owe_refund(connection: psycopg.Connection, payment_id: UUID, reason: str) -> bool:
    """Note that the whole payment has to go back, and publish `payment.refund_due`, in the
    caller's transaction. Whether that is news: a payment is given back once.

    Raises `UnknownPayment`.
    """
    parameters = {"payment_id": payment_id, "reason": reason}
    row = connection.execute(INSERT_REFUND, parameters).fetchone()
    if row is None:
        if connection.execute(FIND_REFUND, (payment_id,)).fetchone() is None:
            raise UnknownPayment(f"there is no payment {payment_id} to give back")
        return False
    order_id, amount = row
    due = PaymentRefundDue(order_id=order_id, payment_id=payment_id, amount=amount, reason=reason)
    publish(connection, order_event(due))
    return True
