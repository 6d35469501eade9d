"""Notifications that other flows ask for, by channel and template."""

from typing import Any

from handlers.events import NotificationRequested
from handlers.notifications.channels import (
    EMAIL,
    PUSH,
    WHATSAPP,
    Channel,
    EmailChannel,
    MessageChannel,
)
from handlers.notifications.delivery import Delivery
from handlers.notifications.templates import unknown
from outboxd import Context, Event, Reject


class RequestedNotification:
    """Sends what was asked for; a channel or template that does not exist is a dead letter.

    `transport` and what belongs to it (handlers/notifications/transports.py) are the e-mails'
    options; `whatsapp_url` and `push_url` are the services'. A channel without its options is
    refused like an unknown one. `timeout_seconds` is that of every channel.
    """

    def __init__(
        self,
        *,
        database_url: str,
        whatsapp_url: str | None = None,
        whatsapp_token: str | None = None,
        push_url: str | None = None,
        push_token: str | None = None,
        timeout_seconds: float | str = 10.0,
        **email: Any,
    ) -> None:
        self._channels: dict[str, Channel] = {}
        if email:
            self._channels[EMAIL] = EmailChannel({**email, "timeout_seconds": timeout_seconds})
        for name, url, token in (
            (WHATSAPP, whatsapp_url, whatsapp_token),
            (PUSH, push_url, push_token),
        ):
            if url is not None:
                options = {"base_url": url, "token": token, "timeout_seconds": timeout_seconds}
                self._channels[name] = MessageChannel(name, options)
        if not self._channels:
            raise ValueError(
                "no channel is configured: set `transport`, `whatsapp_url` or `push_url`"
            )
        self._delivery = Delivery(database_url)

    def __call__(self, event: Event[NotificationRequested], context: Context) -> None:
        asked = event.payload
        channel = self._channels.get(asked.channel)
        if channel is None:
            raise Reject(unknown("channel", asked.channel, self._channels))
        self._delivery.tell(
            asked.order_id, asked.template, asked.channel, channel, context, asked.customer_id
        )

    def close(self) -> None:
        """Close its connections; for tests, as a handler lives as long as its process."""
        for channel in self._channels.values():
            channel.close()
        self._delivery.close()
