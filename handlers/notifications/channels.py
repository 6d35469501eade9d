"""The ways to a customer: e-mail, and services that are asked over HTTP."""

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from handlers.notifications.emails import Sender, compose
from handlers.notifications.orders import Order
from handlers.notifications.templates import Text
from handlers.notifications.transports import email_options, open_transport
from handlers.partners import Partner, PartnerOptions

EMAIL = "email"
WHATSAPP = "whatsapp"
PUSH = "push"


class Notification(Struct, frozen=True):
    """One text to the customer of one order; `key` is the same in every attempt to send it."""

    order: Order
    template: str
    text: Text
    key: str


class Channel(Protocol):
    """Sends; may be used by several threads at a time."""

    def send(self, notification: Notification, seconds_left: float) -> None:
        """When this returns, the service has taken it. Raises Reject when it never will."""

    def close(self) -> None:
        """Close its connections."""


class EmailChannel:
    """E-mails by the transport of the configuration."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        decoded = email_options(options)
        self._sender = Sender(decoded.sender)
        self._transport = open_transport(decoded)

    def send(self, notification: Notification, seconds_left: float) -> None:
        message = compose(
            self._sender,
            notification.order,
            notification.template,
            notification.text,
            notification.key,
        )
        self._transport.send(message, sender=self._sender.address, seconds_left=seconds_left)

    def close(self) -> None:
        """Nothing is kept open."""


class MessageChannel:
    """A service that knows the shop's customers by their ids, so that the shop need not know their
    telephones; it recognises repetitions by the Idempotency-Key."""

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        self._service = Partner(
            f"the {name} service", msgspec.convert(options, PartnerOptions, strict=False)
        )

    def send(self, notification: Notification, seconds_left: float) -> None:
        content = {
            "to": str(notification.order.customer_id),
            "template": notification.template,
            "order_id": str(notification.order.order_id),
            "text": notification.text.body,
        }
        self._service.post("/messages", content, key=notification.key, seconds_left=seconds_left)

    def close(self) -> None:
        self._service.close()
