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
    ProfileNotFound,
    ReadTimeoutError,
    SSOError,
    TokenRetrievalError,
)

from outboxd.core.errors import OutageKind, Unavailable

AWS_ERRORS = (ClientError, BotoCoreError)
"""What an SDK call may raise that is not a bug of ours."""

_KIND_OF_CODE = {
    "AccessDenied": OutageKind.DENIED,
    "AccessDeniedException": OutageKind.DENIED,
    "AuthorizationError": OutageKind.DENIED,
    "NotAuthorizedForDetailTypeException": OutageKind.DENIED,
    "NotAuthorizedForSourceException": OutageKind.DENIED,
    "KMSAccessDenied": OutageKind.DENIED,
    "KMSDisabled": OutageKind.DENIED,
    "KMSInvalidState": OutageKind.DENIED,
    "KMSNotFound": OutageKind.DENIED,
    "KMSOptInRequired": OutageKind.DENIED,
    "KmsAccessDenied": OutageKind.DENIED,
    "KmsDisabled": OutageKind.DENIED,
    "KmsInvalidState": OutageKind.DENIED,
    "KmsNotFound": OutageKind.DENIED,
    "KmsOptInRequired": OutageKind.DENIED,
    "AWS.SimpleQueueService.NonExistentQueue": OutageKind.MISSING,
    "NonExistentQueue": OutageKind.MISSING,
    "QueueDoesNotExist": OutageKind.MISSING,
    "NotFound": OutageKind.MISSING,
    "ResourceNotFoundException": OutageKind.MISSING,
    "ExpiredToken": OutageKind.CREDENTIALS,
    "ExpiredTokenException": OutageKind.CREDENTIALS,
    "InvalidClientTokenId": OutageKind.CREDENTIALS,
    "InvalidSecurity": OutageKind.CREDENTIALS,
    "UnrecognizedClientException": OutageKind.CREDENTIALS,
    "SignatureDoesNotMatch": OutageKind.CREDENTIALS,
    "MissingAuthenticationToken": OutageKind.CREDENTIALS,
    "Throttling": OutageKind.THROTTLED,
    "ThrottlingException": OutageKind.THROTTLED,
    "RequestThrottled": OutageKind.THROTTLED,
    "Throttled": OutageKind.THROTTLED,
    "KMSThrottling": OutageKind.THROTTLED,
    "TooManyRequestsException": OutageKind.THROTTLED,
    "KmsThrottled": OutageKind.THROTTLED,
    "OverLimit": OutageKind.THROTTLED,
}


def outage(
    error: ClientError | BotoCoreError,
    doing: str,
    *,
    thing: str = "queue",
    endpoint_url: str | None = None,
) -> Unavailable:
    """The SDK's error as one of ours; `doing` says what was tried, on which queue or other `thing`.

    With the `endpoint_url` of the configuration, if it has one, it also says where to look when
    nobody answers there.
    """
    kind = _kind(error)
    where = ""
    if endpoint_url is not None and kind in (OutageKind.UNREACHABLE, OutageKind.TIMEOUT):
        where = "; check [aws] endpoint_url; is `outboxd localaws` running?"
    return Unavailable(f"{doing}: {_advice(kind, thing)}: {_words(error)}{where}", kind)


def _words(error: ClientError | BotoCoreError) -> str:
    """What AWS or the SDK says, without the number of retries, which is the SDK's own affair."""
    match error:
        case ClientError(response={"Error": {"Code": code, "Message": message}}):
            return f"{error.operation_name} answers {code}: {message}"
        case _:
            return str(error)


def code_of(error: ClientError) -> str:
    """The error's name without the prefix that SQS's older protocol has."""
    return str(error.response.get("Error", {}).get("Code", "")).rsplit(".", 1)[-1]


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
        case (
            NoCredentialsError()
            | PartialCredentialsError()
            | CredentialRetrievalError()
            | ProfileNotFound()
            | SSOError()
            | TokenRetrievalError()
        ):
            return OutageKind.CREDENTIALS
        case _:
            return OutageKind.OTHER


def _advice(kind: OutageKind, thing: str) -> str:
    match kind:
        case OutageKind.DENIED:
            return "access denied (compare the IAM policy with docs/iam.md)"
        case OutageKind.MISSING:
            return f"the {thing} does not exist (run `outboxd provision`)"
        case OutageKind.CREDENTIALS:
            return (
                "no valid AWS credentials (set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
                "AWS_PROFILE, or run with a role)"
            )
        case OutageKind.THROTTLED:
            return "throttled"
        case OutageKind.TIMEOUT:
            return "no answer in time"
        case OutageKind.UNREACHABLE:
            return "cannot connect"
        case OutageKind.SERVER_FAULT | OutageKind.OTHER:
            return "failed"
