"""ReceiveMessage: at once, or waiting for a message."""

from collections.abc import Callable, Mapping

from outboxd.localaws.faults import Target
from outboxd.localaws.sqs import requests, responses
from outboxd.localaws.sqs.call import Call, Waiting
from outboxd.localaws.sqs.digests import attributes_md5
from outboxd.localaws.sqs.errors import (
    invalid_parameter_value,
    queue_does_not_exist,
    unknown_attribute,
)
from outboxd.localaws.sqs.fifo import FifoQueue
from outboxd.localaws.sqs.message import AttributeValue, Delivery, Message
from outboxd.localaws.sqs.queue import Queue
from outboxd.localaws.sqs.settings import MAX_VISIBILITY_SECONDS, MAX_WAIT_SECONDS
from outboxd.localaws.sqs.standard import StandardQueue
from outboxd.localaws.sqs.validation import check_range, check_token

MAX_MESSAGES = 10
# Credentials are not checked, so there is one sender.
SENDER_ID = "AIDALOCALAWSOUTBOXD00"

_SYSTEM_ATTRIBUTES: dict[str, Callable[[Message], str | None]] = {
    "SenderId": lambda message: SENDER_ID,
    "SentTimestamp": lambda message: _milliseconds(message.sent_at),
    "ApproximateReceiveCount": lambda message: str(message.receives),
    "ApproximateFirstReceiveTimestamp": lambda message: _milliseconds(message.first_received_at),
    "SequenceNumber": lambda message: message.sequence,
    "MessageDeduplicationId": lambda message: message.deduplication_id,
    "MessageGroupId": lambda message: message.group,
    "AWSTraceHeader": lambda message: message.trace_header,
    "DeadLetterQueueSourceArn": lambda message: message.dead_letter_source,
}
_ALL_SYSTEM_ATTRIBUTES = frozenset(_SYSTEM_ATTRIBUTES)


def receive_message(call: Call, request: requests.ReceiveMessage) -> responses.Messages | Waiting:
    queue = call.queue(request.queue_url)
    attempt = _attempt(call, queue, request)
    wait = request.wait_time_seconds
    if wait is None:
        wait = queue.settings.receive_wait_seconds
    reason = f"Must be >= 0 and <= {MAX_WAIT_SECONDS}, if provided."
    check_range(wait, "WaitTimeSeconds", 0, MAX_WAIT_SECONDS, reason)
    response = attempt(call.now)
    if response is not None:
        return response
    nothing = responses.Messages()
    return nothing if wait == 0 else Waiting(queue, attempt, call.now + wait, nothing)


def _attempt(
    call: Call, queue: Queue, request: requests.ReceiveMessage
) -> Callable[[float], responses.Messages | None]:
    """One try at receiving, to be repeated by a long poll. Raises AwsError."""
    maximum = _or_default(request.max_number_of_messages, 1)
    check_range(maximum, "MaxNumberOfMessages", 1, MAX_MESSAGES)
    visibility = request.visibility_timeout
    check_range(visibility or 0, "VisibilityTimeout", 0, MAX_VISIBILITY_SECONDS)
    system_names = _system_names(request)
    wanted = _attribute_filter(request.message_attribute_names)
    attempt_id = _attempt_id(queue, request)

    def attempt(now: float) -> responses.Messages | None:
        if queue.deleted:
            raise queue_does_not_exist()
        # The queue's own timeout is read at each try: it may be changed during a long poll.
        seconds = _or_default(visibility, queue.settings.visibility_seconds)
        deliveries = _deliveries(call, queue, maximum, seconds, attempt_id, now)
        if not deliveries:
            return None
        return responses.Messages([_received(d, system_names, wanted) for d in deliveries])

    return attempt


def _deliveries(
    call: Call, queue: Queue, maximum: int, visibility: int, attempt_id: str | None, now: float
) -> list[Delivery]:
    match queue:
        case StandardQueue() if call.deliveries.active:
            return _distorted(call, queue, maximum, visibility, now)
        case FifoQueue() if attempt_id is not None:
            return _repeatable(queue, maximum, visibility, attempt_id, now)
        case _:
            return queue.receive(maximum, visibility, now)


def _distorted(
    call: Call, queue: StandardQueue, maximum: int, visibility: int, now: float
) -> list[Delivery]:
    """Deliver as the script wants it: nothing that a standard queue would not be allowed to do."""
    target = Target("sqs", "ReceiveMessage", queue.identity.region, queue.identity.name)
    if queue.depth(now).visible > 1 and call.deliveries.reorders(target):
        deliveries = queue.receive_newest_first(maximum, visibility, now)
    else:
        deliveries = queue.receive(maximum, visibility, now)
    for message, _ in deliveries:
        if not message.copied and call.deliveries.duplicates(target, message.body):
            queue.deliver_again(message, now)
    return deliveries


def _repeatable(
    queue: FifoQueue, maximum: int, visibility: int, attempt_id: str, now: float
) -> list[Delivery]:
    again = queue.receive_again(attempt_id, visibility, now)
    if again:
        return again
    deliveries = queue.receive(maximum, visibility, now)
    if deliveries:
        queue.remember_attempt(attempt_id, deliveries, now)
    return deliveries


def _attempt_id(queue: Queue, request: requests.ReceiveMessage) -> str | None:
    attempt_id = request.receive_request_attempt_id
    if attempt_id is not None:
        if not isinstance(queue, FifoQueue):
            reason = "The request include parameter that is not valid for this queue type."
            raise invalid_parameter_value(attempt_id, "ReceiveRequestAttemptId", reason)
        check_token(attempt_id, "ReceiveRequestAttemptId")
    return attempt_id


def _or_default(value: int | None, default: int) -> int:
    return default if value is None else value


def _system_names(request: requests.ReceiveMessage) -> frozenset[str]:
    """System attributes that were asked for, by the present parameter or by its forerunner."""
    names = frozenset((*request.message_system_attribute_names, *request.attribute_names))
    if "All" in names:
        return _ALL_SYSTEM_ATTRIBUTES
    unknown = names - _ALL_SYSTEM_ATTRIBUTES
    if unknown:
        raise unknown_attribute(min(unknown))
    return names


def _attribute_filter(names: list[str]) -> Callable[[str], bool] | None:
    """Whether an attribute of this name was asked for; None: none was, or all were not."""
    if not names:
        return None
    if any(name in ("All", ".*", "*") for name in names):
        return lambda name: True
    prefixes = tuple(name[:-2] for name in names if name.endswith(".*"))
    exact = frozenset(names)
    return lambda name: name in exact or name.startswith(prefixes)


def _received(
    delivery: Delivery, system_names: frozenset[str], wanted: Callable[[str], bool] | None
) -> responses.Received:
    message, handle = delivery
    attributes = _wanted(message.attributes, wanted)
    return responses.Received(
        message_id=message.id,
        receipt_handle=handle,
        body_md5=message.body_md5,
        body=message.body,
        attributes=_system_attributes(message, system_names),
        attributes_md5=attributes_md5(attributes),
        message_attributes=attributes,
    )


def _system_attributes(message: Message, names: frozenset[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in names:
        value = _SYSTEM_ATTRIBUTES[name](message)
        if value is not None:
            found[name] = value
    return found


def _wanted(
    attributes: Mapping[str, AttributeValue], wanted: Callable[[str], bool] | None
) -> dict[str, AttributeValue]:
    if wanted is None:
        return {}
    return {name: value for name, value in attributes.items() if wanted(name)}


def _milliseconds(seconds: float | None) -> str | None:
    return None if seconds is None else str(int(seconds * 1000))
