"""The refusals of SNS, with the names and mostly the words of AWS."""

from outboxd.localaws.errors import AwsError


def invalid_parameter(reason: str) -> AwsError:
    """`reason` starts with the parameter's name."""
    return AwsError(
        "InvalidParameterException", f"Invalid parameter: {reason}", code="InvalidParameter"
    )


def invalid_value(message: str) -> AwsError:
    """A message attribute that cannot be."""
    return AwsError("InvalidParameterValueException", message, code="ParameterValueInvalid")


def topic_not_found() -> AwsError:
    return AwsError("NotFoundException", "Topic does not exist", code="NotFound", status=404)


def subscription_not_found() -> AwsError:
    message = "Subscription does not exist"
    return AwsError("NotFoundException", message, code="NotFound", status=404)


def filter_policy_invalid(reason: str) -> AwsError:
    return invalid_parameter(f"FilterPolicy: {reason}")


def unsupported(message: str) -> AwsError:
    """AWS can do this, localaws cannot."""
    return AwsError("UnsupportedOperation", f"localaws {message}")


def unknown_action(action: str) -> AwsError:
    return AwsError(
        "InvalidAction", f"The action {action!r} is not valid for this endpoint of localaws."
    )


def empty_batch() -> AwsError:
    return AwsError(
        "EmptyBatchRequestException",
        "The batch request doesn't contain any entries.",
        code="EmptyBatchRequest",
    )


def too_many_entries(count: int, limit: int) -> AwsError:
    return AwsError(
        "TooManyEntriesInBatchRequestException",
        f"The batch request contains more entries than permissible: {count} of {limit}.",
        code="TooManyEntriesInBatchRequest",
    )


def batch_ids_not_distinct() -> AwsError:
    return AwsError(
        "BatchEntryIdsNotDistinctException",
        "Two or more batch entries in the request have the same Id.",
        code="BatchEntryIdsNotDistinct",
    )


def invalid_batch_entry_id() -> AwsError:
    return AwsError(
        "InvalidBatchEntryIdException",
        "The Id of a batch entry in a batch request doesn't abide by the specification.",
        code="InvalidBatchEntryId",
    )


def batch_too_long(size: int, limit: int) -> AwsError:
    return AwsError(
        "BatchRequestTooLongException",
        "The length of all the messages put together is more than the limit: "
        f"{size} of {limit} bytes.",
        code="BatchRequestTooLong",
    )
