"""The local AWS stand-in in a process of its own, so that the demo cannot hold it up."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from outboxd.adapters.aws.outages import AWS_ERRORS, outage
from outboxd.adapters.sqs.client import sqs_client
from outboxd.core.errors import OutageKind
from outboxd.core.settings import AwsSettings
from outboxd.demo.errors import DemoError
from outboxd.demo.neighbours import announcing

PLACEHOLDER_CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
"""Stand-ins check none, but the SDK does not send a request without them."""


@contextmanager
def local_aws(log: Path) -> Iterator[str]:
    """A local AWS while the block lasts; its endpoint's URL."""
    command = ["-m", "outboxd.demo.lifeline", "localaws", "--port", "0"]
    with announcing(command, "the local AWS", log) as endpoint:
        yield endpoint


def check_endpoint(endpoint: str) -> None:
    """Ask for the list of queues. Raises DemoError if nobody there speaks SQS.

    Before anything else is started: a failure later does not tell whose mistake it is.
    """
    use_credentials(endpoint)
    settings = AwsSettings(region=region(), endpoint_url=endpoint)
    try:
        sqs_client(settings, connections=1).list_queues(MaxResults=1)
    except ValueError as error:  # botocore's, for what is no URL
        raise DemoError(f"--aws-endpoint: {error}: expected a URL, http://HOST:PORT") from error
    except AWS_ERRORS as error:
        why = outage(error, "listing its queues")
        if why.kind is OutageKind.DENIED:  # somebody is there, and other calls may be allowed
            return
        raise DemoError(
            f"--aws-endpoint {endpoint} does not work: {why}\n"
            "(without this option the demo brings a local AWS of its own)"
        ) from error


def use_credentials(endpoint: str) -> None:
    """Have some for the SDK, unless the endpoint is Amazon's own."""
    if not is_aws(endpoint):
        for name, value in PLACEHOLDER_CREDENTIALS.items():
            os.environ.setdefault(name, value)


def region() -> str:
    """Where queues are made, on services that have regions."""
    return os.environ.get("AWS_REGION", "us-east-1")


def is_aws(endpoint: str) -> bool:
    """Whether the endpoint is Amazon's own, where placeholder credentials must not go."""
    host = urlsplit(endpoint).hostname or ""
    return host.endswith((".amazonaws.com", ".amazonaws.com.cn", ".api.aws"))
