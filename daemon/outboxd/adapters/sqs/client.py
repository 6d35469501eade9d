"""One SQS client a process, with timeouts that end before a lease does."""

from typing import TYPE_CHECKING

from outboxd.adapters.aws.config import client_arguments
from outboxd.adapters.aws.transport.sessions import sdk_session
from outboxd.core.settings import AwsSettings

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient


def sqs_client(
    aws: AwsSettings, *, connections: int, wait_seconds: int = 0, attempts: int = 2
) -> "SQSClient":
    """A client for `connections` threads, as adapters.aws.config says."""
    return sdk_session(aws).client(
        "sqs",
        **client_arguments(
            aws, connections=connections, wait_seconds=wait_seconds, attempts=attempts
        ),
    )
