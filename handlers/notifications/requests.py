"""Notifications that other flows ask for, by channel and template."""

from collections.abc import Mapping
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

    `email` are the options of a transport, `whatsapp` and `push` those of a partner (`base_url`,
    `timeout_seconds`, `token`); a channel without options is refused like an unknown one.
    """

    def __init__(
        self,
        *,
        database_url: str,
        email: Mapping[str, Any] | None = None,
        whatsapp: Mapping[str, Any] | None = None,
        push: Mapping[str, Any] | None = None,
    ) -> None:
        self._channels: dict[str, Channel] = {}
        if email is not None:
            self._channels[EMAIL] = EmailChannel(email)
        if whatsapp is not None:
            self._channels[WHATSAPP] = MessageChannel("WhatsApp", whatsapp)
        if push is not None:
            self._channels[PUSH] = MessageChannel("push", push)
        if not self._channels:
            raise ValueError("no channel is configured: set `email`, `whatsapp` or `push`")
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
