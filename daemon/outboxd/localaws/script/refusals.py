"""The errors that faults are told by, in the words of AWS."""

from typing import assert_never

from outboxd.localaws.errors import AwsError
from outboxd.localaws.events.arns import bus_arn
from outboxd.localaws.faults import Target
from outboxd.localaws.script.kinds import (
    AccessDenied,
    Error,
    ExpiredToken,
    ServerError,
    StaleReceipt,
    Throttle,
)
from outboxd.localaws.sns.arns import topic_arn
from outboxd.localaws.sqs.arns import ACCOUNT, queue_arn
from outboxd.localaws.sqs.errors import message_not_in_flight, receipt_handle_is_invalid

_MODEL = "com.amazonaws.sqs"

Refusing = Throttle | ServerError | Error | ExpiredToken | AccessDenied


def refusal(kind: Refusing, target: Target) -> AwsError:
    """What a whole call is refused with."""
    match kind:
        case Throttle():
            return _throttled(kind, target)
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
                status=_forbidden(target),
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


def _throttled(kind: Throttle, target: Target) -> AwsError:
    match target.service, kind.code:
        case "sns", _:
            return AwsError("ThrottledException", "Rate exceeded", code="Throttling")
        case "sqs", "RequestThrottled":
            return AwsError(
                "RequestThrottled", "Request is throttled.", status=403, namespace=_MODEL
            )
        case _:
            return AwsError("ThrottlingException", "Rate exceeded")


def _access_denied(target: Target) -> AwsError:
    action = _permission(target)
    shape, code = "AccessDeniedException", "AccessDenied"
    if target.service == "sns":
        shape, code = "AuthorizationErrorException", "AuthorizationError"
    return AwsError(
        shape,
        f"User: arn:aws:iam::{ACCOUNT}:user/test is not authorized to perform: {action} "
        f"on resource: {_resource(target)} because no identity-based policy allows the {action} "
        "action",
        code=code,
        status=_forbidden(target),
    )


def _permission(target: Target) -> str:
    # IAM knows no action for a batch: its permission is that of the single call.
    action = target.operation.removesuffix("Batch")
    match target.service:
        case "sns":
            return f"SNS:{action}"
        case "events":
            return f"events:{action}"
        case _:
            return f"sqs:{action}".lower()


def _resource(target: Target) -> str:
    match target.service:
        case "sns":
            return topic_arn(target.region, target.queue or "*")
        case "events":
            return bus_arn(target.region, target.queue or "*")
        case _:
            return queue_arn(target.region, target.queue or "*")


def _forbidden(target: Target) -> int:
    """The services whose first protocol was JSON answer 400 to whatever is the client's fault."""
    return 400 if target.service == "events" else 403
