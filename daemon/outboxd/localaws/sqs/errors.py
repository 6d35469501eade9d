"""The refusals of SQS, with the names and mostly the words of AWS.

Shapes are those of the service model; the `AWS.SimpleQueueService.` codes are what the query
protocol called them and what botocore still reports as `Error.Code`.
"""

from outboxd.localaws.errors import AwsError

_MODEL = "com.amazonaws.sqs"
_LEGACY = "AWS.SimpleQueueService"


def _modelled(shape: str, message: str, *, code: str | None = None, status: int = 400) -> AwsError:
    return AwsError(shape, message, code=code, status=status, namespace=_MODEL)


def queue_does_not_exist() -> AwsError:
    return _modelled(
        "QueueDoesNotExist",
        "The specified queue does not exist.",
        code=f"{_LEGACY}.NonExistentQueue",
    )


def queue_name_exists(attribute: str) -> AwsError:
    return _modelled(
        "QueueNameExists",
        "A queue already exists with the same name and a different value for attribute "
        + attribute,
        code="QueueAlreadyExists",
    )


def queue_deleted_recently() -> AwsError:
    return _modelled(
        "QueueDeletedRecently",
        "You must wait 60 seconds after deleting a queue before you can create another "
        "with the same name.",
        code=f"{_LEGACY}.QueueDeletedRecently",
    )


def purge_in_progress(queue_name: str) -> AwsError:
    return _modelled(
        "PurgeQueueInProgress",
        f"Only one PurgeQueue operation on {queue_name} is allowed every 60 seconds.",
        code=f"{_LEGACY}.PurgeQueueInProgress",
        status=403,
    )


def over_limit(message: str) -> AwsError:
    return _modelled("OverLimit", message, status=403)


def invalid_address(url: str) -> AwsError:
    return _modelled("InvalidAddress", f"The address {url} is not valid for this endpoint.")


def invalid_attribute_name(message: str) -> AwsError:
    return _modelled("InvalidAttributeName", message)


def unknown_attribute(name: str) -> AwsError:
    return invalid_attribute_name(f"Unknown Attribute {name}.")


def invalid_attribute_value(name: str, reason: str = "") -> AwsError:
    suffix = f" Reason: {reason}" if reason else ""
    return _modelled("InvalidAttributeValue", f"Invalid value for the parameter {name}.{suffix}")


def invalid_message_contents() -> AwsError:
    return _modelled(
        "InvalidMessageContents",
        "Invalid characters found. Valid unicode characters are "
        "#x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF.",
    )


def receipt_handle_is_invalid(handle: str) -> AwsError:
    return _modelled(
        "ReceiptHandleIsInvalid",
        f'The input receipt handle "{handle}" is not a valid receipt handle.',
    )


def receipt_handle_expired(handle: str) -> AwsError:
    return invalid_parameter_value(handle, "ReceiptHandle", "The receipt handle has expired.")


def message_not_available(handle: str) -> AwsError:
    """A visibility change for a message that is gone, or that somebody else has received since."""
    return invalid_parameter_value(
        handle,
        "ReceiptHandle",
        "Message does not exist or is not available for visibility timeout change.",
    )


def message_not_in_flight() -> AwsError:
    """A visibility change after the visibility timeout has run out."""
    return _modelled(
        "MessageNotInflight",
        "The specified message isn't in flight.",
        code=f"{_LEGACY}.MessageNotInflight",
    )


def resource_not_found(message: str) -> AwsError:
    return _modelled("ResourceNotFoundException", message, status=404)


def empty_batch(entry_type: str) -> AwsError:
    return _modelled(
        "EmptyBatchRequest",
        f"There should be at least one {entry_type} in the request.",
        code=f"{_LEGACY}.EmptyBatchRequest",
    )


def too_many_entries(count: int, limit: int) -> AwsError:
    return _modelled(
        "TooManyEntriesInBatchRequest",
        f"Maximum number of entries per request are {limit}. You have sent {count}.",
        code=f"{_LEGACY}.TooManyEntriesInBatchRequest",
    )


def batch_ids_not_distinct(entry_id: str) -> AwsError:
    return _modelled(
        "BatchEntryIdsNotDistinct",
        f"Id {entry_id} repeated.",
        code=f"{_LEGACY}.BatchEntryIdsNotDistinct",
    )


def invalid_batch_entry_id() -> AwsError:
    return _modelled(
        "InvalidBatchEntryId",
        "A batch entry id can only contain alphanumeric characters, hyphens and underscores. "
        "It can be at most 80 letters long.",
        code=f"{_LEGACY}.InvalidBatchEntryId",
    )


def batch_too_long(size: int, limit: int) -> AwsError:
    return _modelled(
        "BatchRequestTooLong",
        f"Batch requests cannot be longer than {limit} bytes. You have sent {size} bytes.",
        code=f"{_LEGACY}.BatchRequestTooLong",
    )


def invalid_parameter(message: str) -> AwsError:
    return AwsError("InvalidParameterValueException", message, code="InvalidParameterValue")


def invalid_parameter_value(value: object, name: str, reason: str) -> AwsError:
    return invalid_parameter(f"Value {value} for parameter {name} is invalid. Reason: {reason}")


def missing_parameter(name: str) -> AwsError:
    return AwsError(
        "MissingRequiredParameterException",
        f"The request must contain the parameter {name}.",
        code="MissingParameter",
    )
