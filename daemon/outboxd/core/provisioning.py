"""What the configured queues should be like in SQS, and what it takes to get there."""

import json
from collections.abc import Iterator, Mapping
from enum import StrEnum

import msgspec

from outboxd.core.errors import OutboxdError
from outboxd.core.settings import QueueSettings, Settings, is_fifo

FIFO = "FifoQueue"
"""Given when a queue is created, as "true" or not at all; SQS never changes it."""

CREATED_WITH = {
    FIFO: "true",
    "DeduplicationScope": "messageGroup",
    "FifoThroughputLimit": "perMessageGroupId",
}
"""What a new FIFO queue is given for high throughput: a limit for each message group instead of 300
calls a second for the queue as a whole. It wants ids that are unique within a group, and all that
outboxd sends, of events and of messages, are unique everywhere.

Not corrected later: other senders of a queue that exists may rely on its wider deduplication."""

RETENTION = "MessageRetentionPeriod"
REDRIVE_POLICY = "RedrivePolicy"


class TypeConflict(OutboxdError):
    """A queue exists but is not of the type that its name promises, which cannot be changed."""


class WantedQueue(msgspec.Struct, frozen=True, kw_only=True):
    """A queue as the configuration wants it, by the names of SQS. Attributes that are not named
    here, encryption and policies among them, are left as they are."""

    name: str
    attributes: dict[str, str]
    dead_letter: str | None = None
    max_receive_count: int = 0

    @property
    def created_with(self) -> dict[str, str]:
        """What more it is given once, when it is created."""
        return CREATED_WITH if is_fifo(self.name) else {}


class Action(StrEnum):
    """What has to be done about one queue."""

    CREATE = "create"
    UPDATE = "update"
    UNCHANGED = "unchanged"


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One attribute that differs; `old` is None when the queue has none."""

    attribute: str
    old: str | None
    new: str


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One queue's part of a plan."""

    queue: WantedQueue
    action: Action
    changes: tuple[Change, ...] = ()

    @property
    def shortens_retention(self) -> bool:
        """Whether SQS would delete messages that are in the queue (SetQueueAttributes)."""
        return any(
            change.attribute == RETENTION
            and change.old is not None
            and int(change.new) < int(change.old)
            for change in self.changes
        )


def wanted_queues(settings: Settings) -> tuple[WantedQueue, ...]:
    """Every queue that the configuration names, each dead-letter queue before its source."""
    wanted: dict[str, WantedQueue] = {}
    consumed = {settings.sqs_queue_name(name): name for name in settings.queues}

    def want(name: str) -> None:
        letters, queue = settings.dead_letter_name(name), settings.queues[name]
        if settings.sqs_queue_name(name) in wanted:
            return
        if letters in consumed:
            want(consumed[letters])
        else:
            wanted[letters] = _dead_letter_queue(letters, queue)
        wanted[settings.sqs_queue_name(name)] = _source_queue(settings, name, queue)

    for name in settings.queues:
        want(name)
    return tuple(wanted.values())


def plan(
    wanted: tuple[WantedQueue, ...], existing: Mapping[str, Mapping[str, str]]
) -> tuple[Step, ...]:
    """One step per wanted queue; `existing` has the attributes of those that there are, by name.

    Raises TypeConflict for a queue that is of the other type.
    """
    for queue in wanted:
        _check_type(queue, existing.get(queue.name))
    return tuple(_step(queue, existing.get(queue.name)) for queue in wanted)


def _check_type(queue: WantedQueue, attributes: Mapping[str, str] | None) -> None:
    """AWS keeps name and type together; other services that speak its language may not."""
    if attributes is None or (attributes.get(FIFO) == "true") == is_fifo(queue.name):
        return
    there, wanted = ("a standard", "a FIFO") if is_fifo(queue.name) else ("a FIFO", "a standard")
    raise TypeConflict(
        f"queue {queue.name} exists and is {there} queue, where the configuration needs {wanted} "
        "queue; a queue cannot change its type: delete it once it is empty, or use another name"
    )


def _step(queue: WantedQueue, attributes: Mapping[str, str] | None) -> Step:
    if attributes is None:
        first = (
            Change(attribute=name, old=None, new=value)
            for name, value in queue.created_with.items()
        )
        changes = (*first, *_changes(queue, {}))
        return Step(queue=queue, action=Action.CREATE, changes=changes)
    changes = tuple(_changes(queue, attributes))
    return Step(queue=queue, action=Action.UPDATE if changes else Action.UNCHANGED, changes=changes)


def _changes(queue: WantedQueue, attributes: Mapping[str, str]) -> Iterator[Change]:
    for attribute, new in queue.attributes.items():
        old = attributes.get(attribute)
        if old != new:
            yield Change(attribute=attribute, old=old, new=new)
    if queue.dead_letter is not None:
        old = _redrive(attributes.get(REDRIVE_POLICY))
        new = f"{queue.dead_letter} after {queue.max_receive_count} receives"
        if old != new:
            yield Change(attribute=REDRIVE_POLICY, old=old, new=new)


def _redrive(policy: str | None) -> str | None:
    """A redrive policy in words. The queue's name is enough to compare by: SQS takes only a
    dead-letter queue of the same account and region."""
    if not policy:
        return None
    fields = json.loads(policy)
    name = str(fields.get("deadLetterTargetArn", "")).rpartition(":")[2]
    return f"{name} after {fields.get('maxReceiveCount')} receives"


def _source_queue(settings: Settings, name: str, queue: QueueSettings) -> WantedQueue:
    return WantedQueue(
        name=settings.sqs_queue_name(name),
        attributes={
            "VisibilityTimeout": str(queue.visibility_seconds),
            "ReceiveMessageWaitTimeSeconds": str(queue.wait_seconds),
            RETENTION: _retention(queue.retention_days),
        },
        dead_letter=settings.dead_letter_name(name),
        max_receive_count=queue.max_receive_count,
    )


def _dead_letter_queue(name: str, source: QueueSettings) -> WantedQueue:
    return WantedQueue(
        name=name, attributes={RETENTION: _retention(source.dead_letter_retention_days)}
    )


def _retention(days: float) -> str:
    return str(round(days * 86_400))
