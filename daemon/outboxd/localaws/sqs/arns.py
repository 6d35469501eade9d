"""Names of queues: ARNs and URLs. There is one account."""

from urllib.parse import urlsplit

from outboxd.localaws.sqs.errors import invalid_address

ACCOUNT = "000000000000"


def queue_arn(region: str, name: str) -> str:
    return f"arn:aws:sqs:{region}:{ACCOUNT}:{name}"


def parsed_arn(arn: str) -> tuple[str, str] | None:
    """Region and name, or None for anything but the ARN of a queue of this account."""
    parts = arn.split(":")
    if len(parts) != 6 or parts[:3] != ["arn", "aws", "sqs"] or parts[4] != ACCOUNT:
        return None
    return parts[3], parts[5]


def queue_url(base_url: str, name: str) -> str:
    return f"{base_url}/{ACCOUNT}/{name}"


def queue_name(url: str) -> str:
    """The name in a queue's URL, or the bare name, which AWS takes as well.

    The host is not compared: a client in a container knows this server by another one. Raises
    InvalidAddress.
    """
    if "/" not in url:
        return url
    parts = urlsplit(url).path.split("/")
    if len(parts) != 3 or parts[1] != ACCOUNT or not parts[2]:
        raise invalid_address(url)
    return parts[2]
