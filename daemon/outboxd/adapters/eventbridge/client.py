"""One EventBridge client a process."""

from typing import TYPE_CHECKING

from outboxd.adapters.aws.config import client_arguments
from outboxd.adapters.aws.transport.sessions import sdk_session
from outboxd.core.settings import AwsSettings

if TYPE_CHECKING:
    from types_boto3_events import EventBridgeClient


def events_client(aws: AwsSettings, *, connections: int, attempts: int = 2) -> "EventBridgeClient":
    """A client for `connections` threads, as adapters.aws.config says."""
    return sdk_session(aws).client(
        "events",
        **client_arguments(aws, connections=connections, attempts=attempts),
    )
