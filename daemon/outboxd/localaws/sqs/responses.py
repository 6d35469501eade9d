"""The responses of the SQS JSON protocol; members that are None or empty are left out."""

from collections.abc import Sequence

import msgspec

from outboxd.localaws.sqs.message import AttributeValue


class _Wire(msgspec.Struct, frozen=True, rename="pascal", omit_defaults=True, gc=False):
    pass


class QueueUrl(_Wire, frozen=True):
    queue_url: str


class QueueUrls(_Wire, frozen=True):
    queue_urls: list[str] = []
    next_token: str | None = None


class SourceQueueUrls(_Wire, frozen=True):
    """Spelt with a small letter in the service model, and there even when empty."""

    queue_urls: list[str] = msgspec.field(name="queueUrls")
    next_token: str | None = None


class QueueAttributes(_Wire, frozen=True):
    attributes: dict[str, str] = {}


class QueueTags(_Wire, frozen=True):
    tags: dict[str, str] = {}


class Sent(_Wire, frozen=True):
    message_id: str
    body_md5: str = msgspec.field(name="MD5OfMessageBody")
    attributes_md5: str | None = msgspec.field(name="MD5OfMessageAttributes", default=None)
    system_attributes_md5: str | None = msgspec.field(
        name="MD5OfMessageSystemAttributes", default=None
    )
    sequence_number: str | None = None


class SentEntry(Sent, frozen=True, kw_only=True):
    id: str


class Done(_Wire, frozen=True):
    """An entry of a delete or visibility batch that succeeded."""

    id: str


class Failed(_Wire, frozen=True):
    """An entry of any batch that did not."""

    id: str
    sender_fault: bool
    code: str
    message: str


class BatchResult(_Wire, frozen=True):
    successful: Sequence[SentEntry | Done] = []
    failed: Sequence[Failed] = []


class Received(_Wire, frozen=True, kw_only=True):
    message_id: str
    receipt_handle: str
    body_md5: str = msgspec.field(name="MD5OfBody")
    body: str
    attributes: dict[str, str] = {}
    attributes_md5: str | None = msgspec.field(name="MD5OfMessageAttributes", default=None)
    message_attributes: dict[str, AttributeValue] = {}


class Messages(_Wire, frozen=True):
    messages: list[Received] = []


class TaskHandle(_Wire, frozen=True):
    task_handle: str


class Cancelled(_Wire, frozen=True):
    moved: int = msgspec.field(name="ApproximateNumberOfMessagesMoved")


class MoveTaskEntry(_Wire, frozen=True, kw_only=True):
    task_handle: str | None = None
    status: str
    source_arn: str
    destination_arn: str | None = None
    rate: int | None = msgspec.field(name="MaxNumberOfMessagesPerSecond", default=None)
    moved: int = msgspec.field(name="ApproximateNumberOfMessagesMoved")
    to_move: int = msgspec.field(name="ApproximateNumberOfMessagesToMove")
    failure_reason: str | None = None
    started_timestamp: int


class MoveTaskList(_Wire, frozen=True):
    results: list[MoveTaskEntry]
