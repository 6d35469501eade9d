"""[aws]: where AWS is, and how long a call may take."""

from typing import Annotated, Literal

from msgspec import Meta

from outboxd.core.settings.kinds import Seconds
from outboxd.core.settings.section import Section


class AwsSettings(Section, frozen=True, kw_only=True):
    """Where AWS is. Credentials come from the AWS SDK's own chain, never from this file."""

    region: Annotated[str, Meta(min_length=1)] = "us-east-1"
    endpoint_url: str | None = None
    connect_timeout_seconds: Seconds = 2.0
    read_timeout_seconds: Seconds = 5.0
    transport: Literal["lean", "botocore"] = "lean"
