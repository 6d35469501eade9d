"""E-mails that confirm: after a payment, and for a customer who asks.

Constructed once per process with the `options` of the configuration: `database_url`, and those of
the e-mail `transport` (handlers/notifications/transports.py).
"""

from typing import Any

from handlers.events import PaymentSucceeded, SendConfirmationEmail
from handlers.notifications.channels import EMAIL, EmailChannel
from handlers.notifications.delivery import Delivery
from handlers.notifications.templates import ORDER_CONFIRMATION, PAYMENT_SUCCESS
from outboxd import Context, Event


class _Email:
    def __init__(self, *, database_url: str, **email: Any) -> None:
        self._email = EmailChannel(email)
        self._delivery = Delivery(database_url)

    def close(self) -> None:
        """Close its connections; for tests, as a handler lives as long as its process."""
        self._email.close()
        self._delivery.close()


class ConfirmationEmail(_Email):
    """Tells the customer that the payment has arrived, straight from the event that says so."""

    def __call__(self, event: Event[PaymentSucceeded], context: Context) -> None:
        order_id = event.payload.order_id
        self._delivery.tell(order_id, PAYMENT_SUCCESS, EMAIL, self._email, context)


class RequestedConfirmationEmail(_Email):
    """Confirms the order itself; a job, as it is somebody's wish and no fact."""

    def __call__(self, job: Event[SendConfirmationEmail], context: Context) -> None:
        order_id = job.payload.order_id
        self._delivery.tell(order_id, ORDER_CONFIRMATION, EMAIL, self._email, context)
