"""The requests of the SQS JSON protocol, as they are decoded.

A member that AWS requires has an empty default here: AWS treats absent and empty alike, with an
error of its own that names the member.
"""

from typing import Annotated

import msgspec

from outboxd.localaws.sqs.message import AttributeValue

Whole = Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)]
Attributes = dict[str, AttributeValue]


class _Wire(msgspec.Struct, frozen=True, rename="pascal", gc=False):
    pass


class CreateQueue(_Wire, frozen=True):
    queue_name: str = ""
    attributes: dict[str, str] = {}
    tags: dict[str, str] = msgspec.field(name="tags", default_factory=dict)


class GetQueueUrl(_Wire, frozen=True):
    queue_name: str = ""


class ListQueues(_Wire, frozen=True):
    queue_name_prefix: str = ""
    next_token: str | None = None
    max_results: Whole | None = None


class QueueOnly(_Wire, frozen=True):
    """DeleteQueue, PurgeQueue, ListQueueTags."""

    queue_url: str = ""


class ListDeadLetterSourceQueues(_Wire, frozen=True):
    queue_url: str = ""
    next_token: str | None = None
    max_results: Whole | None = None


class GetQueueAttributes(_Wire, frozen=True):
    queue_url: str = ""
    attribute_names: list[str] = []


class SetQueueAttributes(_Wire, frozen=True):
    queue_url: str = ""
    attributes: dict[str, str] = {}


class TagQueue(_Wire, frozen=True):
    queue_url: str = ""
    tags: dict[str, str] = {}


class UntagQueue(_Wire, frozen=True):
    queue_url: str = ""
    tag_keys: list[str] = []


class AddPermission(_Wire, frozen=True):
    queue_url: str = ""
    label: str = ""
    account_ids: list[str] = msgspec.field(name="AWSAccountIds", default_factory=list)
    actions: list[str] = []


class RemovePermission(_Wire, frozen=True):
    queue_url: str = ""
    label: str = ""


class Outgoing(_Wire, frozen=True):
    """What a producer sends: the members that SendMessage and a batch entry share."""

    message_body: str = ""
    delay_seconds: Whole | None = None
    message_attributes: Attributes = {}
    message_system_attributes: Attributes = {}
    message_deduplication_id: str | None = None
    message_group_id: str | None = None


class SendMessage(Outgoing, frozen=True):
    queue_url: str = ""


class SendEntry(Outgoing, frozen=True):
    id: str = ""


class SendMessageBatch(_Wire, frozen=True):
    queue_url: str = ""
    entries: list[SendEntry] = []


class ReceiveMessage(_Wire, frozen=True):
    queue_url: str = ""
    attribute_names: list[str] = []
    message_system_attribute_names: list[str] = []
    message_attribute_names: list[str] = []
    max_number_of_messages: Whole | None = None
    visibility_timeout: Whole | None = None
    wait_time_seconds: Whole | None = None
    receive_request_attempt_id: str | None = None


class DeleteMessage(_Wire, frozen=True):
    queue_url: str = ""
    receipt_handle: str = ""


class DeleteEntry(_Wire, frozen=True):
    id: str = ""
    receipt_handle: str = ""


class DeleteMessageBatch(_Wire, frozen=True):
    queue_url: str = ""
    entries: list[DeleteEntry] = []


class ChangeMessageVisibility(_Wire, frozen=True):
    queue_url: str = ""
    receipt_handle: str = ""
    visibility_timeout: Whole | None = None


class VisibilityEntry(_Wire, frozen=True):
    id: str = ""
    receipt_handle: str = ""
    visibility_timeout: Whole | None = None


class ChangeMessageVisibilityBatch(_Wire, frozen=True):
    queue_url: str = ""
    entries: list[VisibilityEntry] = []


class StartMessageMoveTask(_Wire, frozen=True):
    source_arn: str = ""
    destination_arn: str | None = None
    max_number_of_messages_per_second: Whole | None = None


class ListMessageMoveTasks(_Wire, frozen=True):
    source_arn: str = ""
    max_results: Whole | None = None


class CancelMessageMoveTask(_Wire, frozen=True):
    task_handle: str = ""
