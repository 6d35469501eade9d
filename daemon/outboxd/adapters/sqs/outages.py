"""Tells from an AWS SDK error why a call as a whole did not succeed."""

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    NoCredentialsError,
    PartialCredentialsError,
    ReadTimeoutError,
)

from outboxd.core.errors import OutageKind, Unavailable

AWS_ERRORS = (ClientError, BotoCoreError)
"""What an SDK call may raise that is not a bug of ours."""

_KIND_OF_CODE = {
    "AccessDenied": OutageKind.DENIED,
    "AccessDeniedException": OutageKind.DENIED,
    "KmsAccessDenied": OutageKind.DENIED,
    "KmsDisabled": OutageKind.DENIED,
    "KmsInvalidState": OutageKind.DENIED,
    "KmsNotFound": OutageKind.DENIED,
    "KmsOptInRequired": OutageKind.DENIED,
    "AWS.SimpleQueueService.NonExistentQueue": OutageKind.MISSING,
    "QueueDoesNotExist": OutageKind.MISSING,
    "ExpiredToken": OutageKind.CREDENTIALS,
    "ExpiredTokenException": OutageKind.CREDENTIALS,
    "InvalidClientTokenId": OutageKind.CREDENTIALS,
    "UnrecognizedClientException": OutageKind.CREDENTIALS,
    "SignatureDoesNotMatch": OutageKind.CREDENTIALS,
    "MissingAuthenticationToken": OutageKind.CREDENTIALS,
    "Throttling": OutageKind.THROTTLED,
    "ThrottlingException": OutageKind.THROTTLED,
    "RequestThrottled": OutageKind.THROTTLED,
    "TooManyRequestsException": OutageKind.THROTTLED,
    "KmsThrottled": OutageKind.THROTTLED,
    "OverLimit": OutageKind.THROTTLED,
}


def outage(error: ClientError | BotoCoreError, doing: str) -> Unavailable:
    """The SDK's error as one of ours; `doing` says what was tried, on which queue."""
    kind = _kind(error)
    return Unavailable(f"{doing}: {_advice(kind)}: {error}", kind)


def kind_of_code(code: str) -> OutageKind | None:
    """The outage behind an error code, also of one entry of a batch; None for any other code."""
    return _KIND_OF_CODE.get(code)


def _kind(error: ClientError | BotoCoreError) -> OutageKind:
    match error:
        case ClientError(response={"Error": {"Code": code}}) if code in _KIND_OF_CODE:
            return _KIND_OF_CODE[code]
        case ClientError(response={"ResponseMetadata": {"HTTPStatusCode": int(status)}}):
            return OutageKind.SERVER_FAULT if status >= 500 else OutageKind.OTHER
        case ReadTimeoutError() | ConnectionClosedError():
            return OutageKind.TIMEOUT
        case EndpointConnectionError() | ConnectTimeoutError():
            return OutageKind.UNREACHABLE
        case NoCredentialsError() | PartialCredentialsError() | CredentialRetrievalError():
            return OutageKind.CREDENTIALS
        case _:
            return OutageKind.OTHER


def _advice(kind: OutageKind) -> str:
    match kind:
        case OutageKind.DENIED:
            return "access denied (compare the IAM policy with docs/iam.md)"
        case OutageKind.MISSING:
            return "the queue does not exist (run `outboxd provision`)"
        case OutageKind.CREDENTIALS:
            return "no valid AWS credentials"
        case OutageKind.THROTTLED:
            return "throttled"
        case OutageKind.TIMEOUT:
            return "no answer in time"
        case OutageKind.UNREACHABLE:
            return "cannot connect"
        case OutageKind.SERVER_FAULT | OutageKind.OTHER:
            return "failed"
