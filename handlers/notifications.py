"""E-mails to customers, delivered into a Maildir that a mail transfer agent picks up."""

import mailbox
import re
from email.message import EmailMessage
from email.policy import default as internet
from email.utils import formatdate, parseaddr
from pathlib import Path
from threading import Lock
from uuid import UUID

from handlers.events import PaymentSucceeded, SendConfirmationEmail
from outboxd import Context, Event

CUSTOMERS_DOMAIN = "customers.shop.example"
"""Where the shop's customers get their mail: it keeps no addresses of its own."""


class ConfirmationMailer:
    """Composes confirmations and delivers them; repeats carry the same Message-ID, by which mail
    programs and the demo recognise them."""

    def __init__(self, *, sender: str, mail_directory: str) -> None:
        self._sender = sender
        self._domain = _domain_of(sender)
        self._maildir = _open_maildir(Path(mail_directory))
        self._lock = Lock()

    def send(self, order_id: UUID, idempotency_key: str) -> None:
        """Deliver one message; when this returns, it is on disk."""
        message = self._compose(order_id, idempotency_key)
        with self._lock:  # the file names of `mailbox` are unique to a process, not to a thread
            self._maildir.add(message)

    def _compose(self, order_id: UUID, idempotency_key: str) -> EmailMessage:
        message = EmailMessage(policy=internet)
        message["Message-ID"] = message_id(idempotency_key, self._domain)
        message["Date"] = formatdate(usegmt=True)
        message["From"] = self._sender
        message["To"] = f"order-{order_id}@{CUSTOMERS_DOMAIN}"
        message["Subject"] = "Your order is paid"
        message["Auto-Submitted"] = "auto-generated"  # RFC 3834: no out-of-office replies, please
        message["X-Order-ID"] = str(order_id)
        message.set_content(f"Thank you!\n\nYour order {order_id} is paid and on its way.\n")
        return message


class ConfirmationEmail:
    """Tells the customer that an order is paid.

    Registered with the inbox mode `after`: no transaction covers a mailbox, and an e-mail that
    comes twice is better than one that never comes. Constructed once per process with the
    `options` of the configuration.
    """

    def __init__(self, *, sender: str, mail_directory: str) -> None:
        self._mailer = ConfirmationMailer(sender=sender, mail_directory=mail_directory)

    def __call__(self, event: Event[PaymentSucceeded], context: Context) -> None:
        self._mailer.send(event.payload.order_id, context.idempotency_key)


class RequestedConfirmationEmail:
    """The same e-mail as a job, for a customer who asks for it again."""

    def __init__(self, *, sender: str, mail_directory: str) -> None:
        self._mailer = ConfirmationMailer(sender=sender, mail_directory=mail_directory)

    def __call__(self, job: Event[SendConfirmationEmail], context: Context) -> None:
        self._mailer.send(job.payload.order_id, context.idempotency_key)


def message_id(idempotency_key: str, domain: str) -> str:
    """The Message-ID of what is sent under this key: a dot-atom and a domain (RFC 5322, 3.6.4)."""
    return f"<{re.sub(r'[^A-Za-z0-9_-]+', '.', idempotency_key).strip('.')}@{domain}>"


def _domain_of(sender: str) -> str:
    address = parseaddr(sender)[1]
    domain = address.rpartition("@")[2]
    if "@" not in address or not domain:
        raise ValueError(f"the sender {sender!r} is no e-mail address: set `options.sender`")
    return domain


def _open_maildir(folder: Path) -> mailbox.Maildir:
    # Not `create=True`: of two processes that start together, one would fail.
    for name in ("tmp", "new", "cur"):
        (folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    return mailbox.Maildir(folder, create=False)
