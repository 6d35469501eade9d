"""How every client of the AWS SDK is set up: with timeouts that end before a lease does."""

from typing import TypedDict

from botocore.config import Config

from outboxd.core.settings import AwsSettings


class ClientArguments(TypedDict):
    """What Session.client takes besides the service."""

    region_name: str | None
    endpoint_url: str | None
    config: Config


def client_arguments(
    aws: AwsSettings, *, connections: int, wait_seconds: int = 0, attempts: int = 2
) -> ClientArguments:
    """For `connections` threads, the longest of whose polls is `wait_seconds`.

    The SDK tries a call twice at the most: its silent retries of a send are duplicates on a
    standard queue, and a retry storm must not outlive a lease. The relay allows `attempts=1`: it
    counts and times its own. The read timeout is above the long poll's wait, or nothing would tell
    a half-open connection from an empty queue.
    """
    config = Config(
        connect_timeout=aws.connect_timeout_seconds,
        read_timeout=aws.read_timeout_seconds + wait_seconds,
        max_pool_connections=connections,
        # A tenth of a call's CPU; our calls are typed, and tested against strict servers.
        parameter_validation=False,
        retries={"total_max_attempts": attempts, "mode": "standard"},
        tcp_keepalive=True,
    )
    return {"region_name": aws.region, "endpoint_url": aws.endpoint_url, "config": config}
