"""SendMessage and SendMessageBatch."""

import msgspec

from outboxd.localaws.errors import AwsError
from outboxd.localaws.ids import new_id
from outboxd.localaws.sqs import requests, responses
from outboxd.localaws.sqs.call import Call
from outboxd.localaws.sqs.digests import attributes_md5, body_md5, content_deduplication_id
from outboxd.localaws.sqs.errors import (
    batch_too_long,
    invalid_parameter,
    invalid_parameter_value,
    missing_parameter,
)
from outboxd.localaws.sqs.fifo import FifoQueue
from outboxd.localaws.sqs.message import Message
from outboxd.localaws.sqs.operations.batches import failed_entry
from outboxd.localaws.sqs.queue import Queue
from outboxd.localaws.sqs.settings import MAX_DELAY_SECONDS, MAX_MESSAGE_BYTES
from outboxd.localaws.sqs.validation import (
    check_attributes,
    check_batch,
    check_body,
    check_range,
    check_token,
    message_size,
)

TRACE_HEADER = "AWSTraceHeader"

_NO_DEDUPLICATION_ID = (
    "The queue should either have ContentBasedDeduplication enabled or "
    "MessageDeduplicationId provided explicitly"
)


def send_message(call: Call, request: requests.SendMessage) -> responses.Sent:
    queue = call.queue(request.queue_url)
    if isinstance(queue, FifoQueue) and request.message_group_id is None:
        raise missing_parameter("MessageGroupId")
    _check_identifiable(queue, request)
    size = message_size(request.message_body, request.message_attributes)
    _check(queue, request, size)
    return _accept(call, queue, request)


def send_message_batch(call: Call, request: requests.SendMessageBatch) -> responses.BatchResult:
    """Entries fail one by one, except for what makes AWS refuse the batch as a whole."""
    queue = call.queue(request.queue_url)
    entries = request.entries
    check_batch(entries, "SendMessageBatchRequestEntry")
    sizes = [message_size(entry.message_body, entry.message_attributes) for entry in entries]
    if sum(sizes) > MAX_MESSAGE_BYTES:
        raise batch_too_long(sum(sizes), MAX_MESSAGE_BYTES)
    for entry in entries:
        if isinstance(queue, FifoQueue) and entry.message_group_id is None:
            raise invalid_parameter("The request must contain the parameter MessageGroupId.")
        _check_identifiable(queue, entry)
    successful: list[responses.SentEntry] = []
    failed: list[responses.Failed] = []
    for entry, size in zip(entries, sizes, strict=True):
        try:
            _check(queue, entry, size)
            sent = _accept(call, queue, entry)
            successful.append(responses.SentEntry(id=entry.id, **msgspec.structs.asdict(sent)))
        except AwsError as refusal:
            failed.append(failed_entry(entry.id, refusal))
    return responses.BatchResult(successful, failed)


def _check_identifiable(queue: Queue, sent: requests.Outgoing) -> None:
    if (
        isinstance(queue, FifoQueue)
        and sent.message_deduplication_id is None
        and not queue.settings.content_based_deduplication
    ):
        raise invalid_parameter(_NO_DEDUPLICATION_ID)


def _check(queue: Queue, sent: requests.Outgoing, size: int) -> None:
    """What may be wrong with a single message. Raises AwsError."""
    check_body(sent.message_body)
    check_attributes(sent.message_attributes)
    _check_system_attributes(sent)
    limit = queue.settings.maximum_message_size
    if size > limit:
        raise invalid_parameter(
            "One or more parameters are invalid. "
            f"Reason: Message must be shorter than {limit} bytes."
        )
    check_token(sent.message_group_id, "MessageGroupId")
    check_token(sent.message_deduplication_id, "MessageDeduplicationId")
    _check_for_queue_type(queue, sent)
    if sent.delay_seconds is not None:
        reason = f"DelaySeconds must be >= 0 and <= {MAX_DELAY_SECONDS}."
        check_range(sent.delay_seconds, "DelaySeconds", 0, MAX_DELAY_SECONDS, reason)


def _check_for_queue_type(queue: Queue, sent: requests.Outgoing) -> None:
    reason = "The request include parameter that is not valid for this queue type."
    if isinstance(queue, FifoQueue):
        # Zero is tolerated and means the queue's own delay.
        if sent.delay_seconds:
            raise invalid_parameter_value(sent.delay_seconds, "DelaySeconds", reason)
    elif sent.message_deduplication_id is not None:
        value = sent.message_deduplication_id
        raise invalid_parameter_value(value, "MessageDeduplicationId", reason)


def _check_system_attributes(sent: requests.Outgoing) -> None:
    for name, value in sent.message_system_attributes.items():
        if name != TRACE_HEADER:
            raise invalid_parameter(f"Message system attribute name '{name}' is invalid.")
        if value.data_type != "String" or not value.string_value:
            raise invalid_parameter(
                f"Message system attribute '{name}' must contain a non-empty value "
                "of type 'String'."
            )


def _accept(call: Call, queue: Queue, sent: requests.Outgoing) -> responses.Sent:
    message = _message(call, queue, sent)
    digests = (
        message.body_md5,
        attributes_md5(sent.message_attributes),
        attributes_md5(sent.message_system_attributes),
    )
    if isinstance(queue, FifoQueue):
        earlier = queue.accepted_before(
            message.group or "", message.deduplication_id or "", call.now
        )
        if earlier is not None:
            return responses.Sent(earlier.message_id, *digests, earlier.sequence)
        message.sequence = call.registry.next_sequence()
        queue.remember(message, call.now)
    queue.put(message, _delay(queue, sent), call.now)
    return responses.Sent(message.id, *digests, message.sequence)


def _message(call: Call, queue: Queue, sent: requests.Outgoing) -> Message:
    trace_header = sent.message_system_attributes.get(TRACE_HEADER)
    deduplication_id = sent.message_deduplication_id
    if deduplication_id is None and isinstance(queue, FifoQueue):
        deduplication_id = content_deduplication_id(sent.message_body)
    return Message(
        id=new_id(),
        body=sent.message_body,
        body_md5=body_md5(sent.message_body),
        attributes=sent.message_attributes,
        trace_header=None if trace_header is None else trace_header.string_value,
        group=sent.message_group_id,
        deduplication_id=deduplication_id,
        sequence=None,
        sent_at=call.now,
        retained_since=call.now,
    )


def _delay(queue: Queue, sent: requests.Outgoing) -> int:
    if sent.delay_seconds is None or isinstance(queue, FifoQueue):
        return queue.settings.delay_seconds
    return sent.delay_seconds
