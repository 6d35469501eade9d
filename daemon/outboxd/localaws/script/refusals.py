"""The errors that faults are told by, in the words of AWS."""

from typing import assert_never

from outboxd.localaws.errors import AwsError
from outboxd.localaws.faults import Target
from outboxd.localaws.script.kinds import (
    AccessDenied,
    Error,
    ExpiredToken,
    ServerError,
    StaleReceipt,
    Throttle,
)
from outboxd.localaws.sqs.arns import queue_arn
from outboxd.localaws.sqs.errors import message_not_in_flight, receipt_handle_is_invalid

_MODEL = "com.amazonaws.sqs"

Refusing = Throttle | ServerError | Error | ExpiredToken | AccessDenied


def refusal(kind: Refusing, target: Target) -> AwsError:
    """What a whole call is refused with."""
    match kind:
        case Throttle(code="RequestThrottled"):
            return AwsError(
                "RequestThrottled", "Request is throttled.", status=403, namespace=_MODEL
            )
        case Throttle():
            return AwsError("ThrottlingException", "Rate exceeded")
        case ServerError(status=503):
            return AwsError(
                "ServiceUnavailable",
                "Service unavailable, please try again.",
                status=503,
                sender_fault=False,
            )
        case ServerError():
            return AwsError(
                "InternalFailure",
                "We encountered an internal error. Please try again.",
                status=500,
                sender_fault=False,
            )
        case Error(code=code, status=status, message=message):
            return AwsError(code, message, status=status, sender_fault=status < 500)
        case ExpiredToken():
            return AwsError(
                "ExpiredTokenException",
                "The security token included in the request is expired",
                code="ExpiredToken",
                status=403,
            )
        case AccessDenied():
            return _access_denied(target)
        case _:
            assert_never(kind)


def stale(kind: StaleReceipt, handle: str) -> AwsError:
    """What a receipt handle is refused with, alone or in a batch."""
    match kind.code:
        case "ReceiptHandleIsInvalid":
            return receipt_handle_is_invalid(handle)
        case "MessageNotInflight":
            return message_not_in_flight()
        case _:
            assert_never(kind.code)


def _access_denied(target: Target) -> AwsError:
    # IAM knows no action for a batch: its permission is that of the single call.
    action = f"{target.service}:{target.operation.removesuffix('Batch')}".lower()
    resource = queue_arn(target.region, target.queue or "*")
    return AwsError(
        "AccessDeniedException",
        f"User: arn:aws:iam::000000000000:user/test is not authorized to perform: {action} "
        f"on resource: {resource} because no identity-based policy allows the {action} action",
        code="AccessDenied",
        status=403,
    )
