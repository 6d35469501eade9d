"""What a queue is sent: the message itself, or wrapped in the JSON of a notification."""

from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from outboxd.localaws.sns.subscription import PROTOCOL, Subscription
from outboxd.localaws.sns.topic import Topic
from outboxd.localaws.sqs.inbox import Parcel
from outboxd.localaws.sqs.message import AttributeValue

# Nothing is signed, but who reads a notification finds a member of the usual form.
_SIGNATURE = "bG9jYWxhd3Mgc2lnbnMgbm90aGluZw=="


class Notice(NamedTuple):
    """A message that a topic has accepted. `body` holds all of it, if it differs by protocol."""

    message_id: str
    topic: Topic
    body: str
    by_protocol: bool
    subject: str | None
    attributes: dict[str, AttributeValue]
    group: str | None
    deduplication_id: str | None
    sequence: str | None
    published_at: float

    @property
    def text(self) -> str:
        """The message for queues."""
        if not self.by_protocol:
            return self.body
        texts: dict[str, Any] = msgspec.json.decode(self.body)
        own = texts.get(PROTOCOL)
        return own if isinstance(own, str) else str(texts["default"])


def parcel(notice: Notice, subscription: Subscription, queue_arn: str, base_url: str) -> Parcel:
    """The SQS message: raw with the attributes as its own, else a notification without any."""
    # A standard queue refuses a deduplication id; the group turns it into a fair one.
    deduplication_id = notice.deduplication_id if queue_arn.endswith(".fifo") else None
    if subscription.settings.raw:
        return Parcel(notice.text, notice.attributes, notice.group, deduplication_id)
    body = msgspec.json.encode(_notification(notice, subscription, base_url)).decode()
    return Parcel(body, {}, notice.group, deduplication_id)


def _notification(notice: Notice, subscription: Subscription, base_url: str) -> dict[str, Any]:
    """The members in the order of "HTTP/HTTPS notification JSON format", SNS Developer Guide."""
    topic = notice.topic
    members: dict[str, Any] = {"Type": "Notification", "MessageId": notice.message_id}
    if notice.sequence is not None:
        members["SequenceNumber"] = notice.sequence
    members["TopicArn"] = topic.arn
    if notice.subject is not None:
        members["Subject"] = notice.subject
    members["Message"] = notice.text
    members["Timestamp"] = _timestamp(notice.published_at)
    if not topic.fifo:
        # FIFO topics sign nothing: they deliver to queues only.
        members["SignatureVersion"] = topic.signature_version
        members["Signature"] = _SIGNATURE
        members["SigningCertURL"] = f"{base_url}/SimpleNotificationService.pem"
    arn = quote(subscription.arn, safe=":")
    members["UnsubscribeURL"] = f"{base_url}/?Action=Unsubscribe&SubscriptionArn={arn}"
    if notice.attributes:
        members["MessageAttributes"] = {
            name: {"Type": value.data_type, "Value": _shown(value)}
            for name, value in notice.attributes.items()
        }
    return members


def _shown(value: AttributeValue) -> str | bytes | None:
    """Bytes become base64 in JSON."""
    return value.string_value if value.binary_value is None else value.binary_value


def _timestamp(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
