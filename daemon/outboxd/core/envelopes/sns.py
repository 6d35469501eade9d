"""SNS notifications, as a queue gets them whose subscription has no raw delivery."""

from typing import Any

import msgspec

from outboxd.core.envelopes.checks import decoded
from outboxd.core.envelopes.incoming import Incoming, Malformed, Road, Wrapped
from outboxd.core.envelopes.outline import Outline, text_of
from outboxd.core.envelopes.tracing import first_traceparent

NOTIFICATION = "Notification"

_ABOUT_SUBSCRIPTIONS = ("SubscriptionConfirmation", "UnsubscribeConfirmation")


class _Notification(msgspec.Struct):
    """The keys that matter of {"Type","MessageId","TopicArn","Message","Timestamp", …}.

    `MessageAttributes` is {name: {"Type", "Value"}} by the developer guide; only the trace is read
    from it, and for a trace nothing may fail.
    """

    message: str = msgspec.field(name="Message")
    topic: str = msgspec.field(name="TopicArn", default="an unnamed topic")
    attributes: Any = msgspec.field(name="MessageAttributes", default=None)


_notification = msgspec.json.Decoder(_Notification)


def open_sns(text: str | msgspec.Raw, outline: Outline, road: Road) -> Incoming | Wrapped | None:
    """A notification holds a text; what else SNS sends to a queue holds nothing for a handler."""
    kind = text_of(outline.sns_type)
    if kind in _ABOUT_SUBSCRIPTIONS:
        # Its SubscribeURL stays out of the reason: whoever reads it could confirm.
        raise Malformed(
            f"an SNS message of type {kind} instead of a notification: confirm the subscription "
            f"of {text_of(outline.topic) or 'the topic'} by hand, or remove it"
        )
    if kind != NOTIFICATION:
        return None
    notification = decoded("an SNS notification", _notification, text)
    inner = _trace_attribute(notification.attributes)
    return Wrapped(
        name=f"an SNS notification from {notification.topic[:256]}",
        text=notification.message,
        traceparent=first_traceparent(road.traceparent, inner),
    )


def _trace_attribute(attributes: object) -> object:
    match attributes:
        case {"traceparent": {"Value": value}}:
            return value
        case _:
            return None
