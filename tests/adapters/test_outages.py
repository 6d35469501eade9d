"""What the AWS SDK raises becomes one line that says what to do."""

from typing import Any

import pytest
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    EndpointConnectionError,
    NoCredentialsError,
    UnauthorizedSSOTokenError,
)

from outboxd.adapters.aws.outages import code_of, kind_of_code, outage
from outboxd.core.errors import OutageKind

ENDPOINT = "http://127.0.0.1:4566"


def refused(code: str, status: int = 400) -> ClientError:
    """As the SDK raises it once its retries are used up."""
    response: Any = {
        "Error": {"Code": code, "Message": "not today"},
        "ResponseMetadata": {
            "HTTPStatusCode": status,
            "MaxAttemptsReached": True,
            "RetryAttempts": 0,
        },
    }
    return ClientError(response, "GetQueueUrl")


@pytest.mark.parametrize(
    ("error", "kind", "line"),
    [
        (
            refused("AccessDenied", 403),
            OutageKind.DENIED,
            "asking: access denied (compare the IAM policy with docs/iam.md): "
            "GetQueueUrl answers AccessDenied: not today",
        ),
        (
            refused("InternalError", 500),
            OutageKind.SERVER_FAULT,
            "asking: failed: GetQueueUrl answers InternalError: not today",
        ),
        (
            NoCredentialsError(),
            OutageKind.CREDENTIALS,
            "asking: no valid AWS credentials (set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
            "AWS_PROFILE, or run with a role): Unable to locate credentials",
        ),
    ],
)
def test_an_error_is_told_with_its_remedy(
    error: ClientError | BotoCoreError, kind: OutageKind, line: str
) -> None:
    told = outage(error, "asking")

    assert (told.kind, str(told)) == (kind, line)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("AuthorizationError", OutageKind.DENIED),  # SNS
        ("KMSAccessDenied", OutageKind.DENIED),
        ("NotFound", OutageKind.MISSING),
        ("Throttled", OutageKind.THROTTLED),
        ("InvalidSecurity", OutageKind.CREDENTIALS),
        ("ResourceNotFoundException", OutageKind.MISSING),  # EventBridge
        ("NotAuthorizedForSourceException", OutageKind.DENIED),
        ("NonExistentQueue", OutageKind.MISSING),  # SQS, without its prefix
    ],
)
def test_each_service_has_codes_of_its_own(code: str, kind: OutageKind) -> None:
    assert outage(refused(code), "asking").kind is kind
    assert kind_of_code(code_of(refused(f"AWS.SimpleQueueService.{code}"))) is kind


def test_what_does_not_exist_is_named() -> None:
    told = outage(refused("NotFound", 404), "publishing", thing="topic")

    assert str(told).startswith(
        "publishing: the topic does not exist (run `outboxd provision`): GetQueueUrl answers Not"
    )


def test_a_login_that_ran_out_is_a_matter_of_credentials() -> None:
    assert outage(UnauthorizedSSOTokenError(), "asking").kind is OutageKind.CREDENTIALS


def test_an_endpoint_of_ones_own_that_is_away_is_told_by_its_setting() -> None:
    error = EndpointConnectionError(endpoint_url=ENDPOINT)
    advice = "; check [aws] endpoint_url; is `outboxd localaws` running?"

    assert str(outage(error, "asking", endpoint_url=ENDPOINT)).endswith(advice)
    assert advice not in str(outage(error, "asking"))
    assert advice not in str(outage(refused("Throttling"), "asking", endpoint_url=ENDPOINT))
