"""E-mails through Amazon SES (version 2 of its API).

SES replaces the Message-ID by one of its own; X-Order-ID and X-Template stay.
"""

from email.message import EmailMessage

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from handlers.notifications.transports import MailAway, Ses
from outboxd import Reject

REFUSED = frozenset({"BadRequestException", "MessageRejected", "InvalidParameterValue"})
"""Codes that are about the message; the others are about the account, the network or the moment."""


class SesTransport:
    """One client for all threads, as boto3 allows."""

    def __init__(self, options: Ses) -> None:
        config = Config(
            connect_timeout=options.timeout_seconds,
            read_timeout=options.timeout_seconds,
            # The daemon tries again, and later each time; the SDK would only send more copies.
            retries={"total_max_attempts": 1},
            # The consumer's threads; beyond ten the SDK would throw connections away.
            max_pool_connections=16,
        )
        self._client = boto3.client(
            "sesv2", region_name=options.region, endpoint_url=options.endpoint_url, config=config
        )

    def send(self, message: EmailMessage, *, sender: str, seconds_left: float) -> None:
        if seconds_left <= 0:
            raise MailAway("no time was left to send the e-mail")
        try:
            self._client.send_email(
                FromEmailAddress=sender,
                Destination={"ToAddresses": [str(message["To"])]},
                Content={"Raw": {"Data": message.as_bytes()}},
            )
        except ClientError as error:
            code = error.response["Error"]["Code"]
            said = f"{code}: {error.response['Error'].get('Message', '')}"
            if code in REFUSED:
                raise Reject(f"SES refused the e-mail ({said})") from error
            raise MailAway(f"SES did not take the e-mail: {said}") from error
        except BotoCoreError as error:
            raise MailAway(f"SES did not take the e-mail: {error}") from error
