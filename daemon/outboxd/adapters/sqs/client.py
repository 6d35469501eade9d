"""One SQS client a process, with timeouts that end before a lease does."""

from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

from outboxd.core.settings import AwsSettings

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient


def sqs_client(
    aws: AwsSettings, *, connections: int, wait_seconds: int = 0, attempts: int = 2
) -> "SQSClient":
    """A client for `connections` threads, the longest of whose polls is `wait_seconds`.

    The SDK tries a call twice at the most: its silent retries of a send are duplicates on a
    standard queue, and a retry storm must not outlive a lease. The relay allows `attempts=1`: it
    counts and times its own. The read timeout is above the long poll's wait, or nothing would tell
    a half-open connection from an empty queue.
    """
    return boto3.session.Session().client(
        "sqs",
        region_name=aws.region,
        endpoint_url=aws.endpoint_url,
        config=Config(
            connect_timeout=aws.connect_timeout_seconds,
            read_timeout=aws.read_timeout_seconds + wait_seconds,
            max_pool_connections=connections,
            # A tenth of a call's CPU; our calls are typed, and tested against strict servers.
            parameter_validation=False,
            retries={"total_max_attempts": attempts, "mode": "standard"},
            tcp_keepalive=True,
        ),
    )
