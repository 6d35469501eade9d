"""One SNS client a process."""

from typing import TYPE_CHECKING

from outboxd.adapters.aws.config import client_arguments
from outboxd.adapters.aws.transport.sessions import sdk_session
from outboxd.core.settings import AwsSettings

if TYPE_CHECKING:
    from types_boto3_sns import SNSClient


def sns_client(aws: AwsSettings, *, connections: int, attempts: int = 2) -> "SNSClient":
    """A client for `connections` threads, as adapters.aws.config says."""
    return sdk_session(aws).client(
        "sns",
        **client_arguments(aws, connections=connections, attempts=attempts),
    )
