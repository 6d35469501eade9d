"""DeleteMessage and ChangeMessageVisibility, one by one and in batches."""

from outboxd.localaws.errors import AwsError
from outboxd.localaws.sqs import requests, responses
from outboxd.localaws.sqs.call import Call
from outboxd.localaws.sqs.errors import missing_parameter
from outboxd.localaws.sqs.operations.batches import failed_entry
from outboxd.localaws.sqs.queue import Queue
from outboxd.localaws.sqs.settings import MAX_VISIBILITY_SECONDS
from outboxd.localaws.sqs.validation import check_batch, check_range


def delete_message(call: Call, request: requests.DeleteMessage) -> None:
    _delete(call, call.queue(request.queue_url), request)


def change_message_visibility(call: Call, request: requests.ChangeMessageVisibility) -> None:
    _change_visibility(call, call.queue(request.queue_url), request)


def delete_message_batch(call: Call, request: requests.DeleteMessageBatch) -> responses.BatchResult:
    queue = call.queue(request.queue_url)
    check_batch(request.entries, "DeleteMessageBatchRequestEntry")
    result = _Tally()
    for entry in request.entries:
        try:
            _delete(call, queue, entry)
            result.succeed(entry.id)
        except AwsError as refusal:
            result.fail(entry.id, refusal)
    return result.response()


def change_message_visibility_batch(
    call: Call, request: requests.ChangeMessageVisibilityBatch
) -> responses.BatchResult:
    queue = call.queue(request.queue_url)
    check_batch(request.entries, "ChangeMessageVisibilityBatchRequestEntry")
    result = _Tally()
    for entry in request.entries:
        try:
            _change_visibility(call, queue, entry)
            result.succeed(entry.id)
        except AwsError as refusal:
            result.fail(entry.id, refusal)
    return result.response()


class _Tally:
    """The two lists of a batch's response."""

    def __init__(self) -> None:
        self._successful: list[responses.Done] = []
        self._failed: list[responses.Failed] = []

    def succeed(self, entry_id: str) -> None:
        self._successful.append(responses.Done(entry_id))

    def fail(self, entry_id: str, refusal: AwsError) -> None:
        self._failed.append(failed_entry(entry_id, refusal))

    def response(self) -> responses.BatchResult:
        return responses.BatchResult(self._successful, self._failed)


def _delete(call: Call, queue: Queue, asked: requests.DeleteMessage | requests.DeleteEntry) -> None:
    if not asked.receipt_handle:
        raise missing_parameter("ReceiptHandle")
    queue.delete(asked.receipt_handle, call.now)


def _change_visibility(
    call: Call, queue: Queue, asked: requests.ChangeMessageVisibility | requests.VisibilityEntry
) -> None:
    if not asked.receipt_handle:
        raise missing_parameter("ReceiptHandle")
    if asked.visibility_timeout is None:
        raise missing_parameter("VisibilityTimeout")
    reason = f"Must be between 0 and {MAX_VISIBILITY_SECONDS}, if provided."
    check_range(asked.visibility_timeout, "VisibilityTimeout", 0, MAX_VISIBILITY_SECONDS, reason)
    queue.change_visibility(asked.receipt_handle, asked.visibility_timeout, call.now)
