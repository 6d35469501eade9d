"""How an e-mail leaves the shop: by SMTP, by SES, or into a Maildir, as the configuration says."""

from collections.abc import Mapping
from email.message import EmailMessage
from typing import Annotated, Any, Protocol, assert_never

import msgspec
from msgspec import Meta, Struct


class MailAway(Exception):
    """The mail service cannot be used now, or its answer was lost: send the same message again."""


class Transport(Protocol):
    """Hands messages over; may be used by several threads at a time."""

    def send(self, message: EmailMessage, *, sender: str, seconds_left: float) -> None:
        """When this returns, the service has taken the message.

        Raises Reject when it never will, and MailAway when it may later.
        """


class Smtp(
    Struct,
    frozen=True,
    kw_only=True,
    tag_field="transport",
    tag="smtp",
    forbid_unknown_fields=True,
):
    """A mail server. With `starttls` nothing is sent unencrypted, and the server's certificate is
    checked; `username` and `password` need it."""

    sender: str
    host: str
    port: Annotated[int, Meta(ge=1, le=65535)] = 25
    starttls: bool = False
    username: str | None = None
    password: str | None = None
    timeout_seconds: Annotated[float, Meta(gt=0, le=600)] = 10.0


class Ses(
    Struct,
    frozen=True,
    kw_only=True,
    tag_field="transport",
    tag="ses",
    forbid_unknown_fields=True,
):
    """Amazon SES; credentials come from the environment, as for everything of AWS."""

    sender: str
    region: str | None = None
    endpoint_url: str | None = None
    timeout_seconds: Annotated[float, Meta(gt=0, le=600)] = 10.0


class Maildir(
    Struct,
    frozen=True,
    kw_only=True,
    tag_field="transport",
    tag="maildir",
    forbid_unknown_fields=True,
):
    """A folder that a mail transfer agent empties, or a developer reads."""

    sender: str
    mail_directory: str
    timeout_seconds: Annotated[float, Meta(gt=0, le=600)] = 10.0
    """Of no use here: it is there so that channels can share their options."""


EmailOptions = Smtp | Ses | Maildir

TRANSPORTS = ("maildir", "ses", "smtp")


def email_options(options: Mapping[str, Any]) -> EmailOptions:
    """The options as they are written in the configuration. Raises ValueError."""
    transport = options.get("transport")
    if transport not in TRANSPORTS:
        raise ValueError(f"`transport` is {transport!r}: expected one of {', '.join(TRANSPORTS)}")
    # Not strict: what comes from the environment is a text.
    decoded: EmailOptions = msgspec.convert(options, type=EmailOptions, strict=False)
    if isinstance(decoded, Smtp) and decoded.password is not None and not decoded.starttls:
        raise ValueError("`password` would be sent in the clear: set `starttls = true`")
    return decoded


def open_transport(options: EmailOptions) -> Transport:
    """The transport of these options, not connected yet; a Maildir is made if it is not there."""
    match options:
        case Smtp():
            from handlers.notifications.smtp import SmtpTransport

            return SmtpTransport(options)
        case Ses():
            from handlers.notifications.ses import SesTransport

            return SesTransport(options)
        case Maildir():
            from handlers.notifications.maildir import MaildirTransport

            return MaildirTransport(options)
        case _:
            assert_never(options)
