"""E-mails: composed here, handed over by a transport."""

import re
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import formatdate, parseaddr

from handlers.notifications.orders import Order
from handlers.notifications.templates import Text

# Not folded at 78 characters, as a Message-ID on a line of its own begins with a space for those
# who compare it; 998 is what a line may have (RFC 5322, 2.1.1).
INTERNET = SMTP.clone(max_line_length=998)

CUSTOMERS_DOMAIN = "customers.shop.example"
"""Where the shop's customers get their mail: it keeps no addresses of its own."""


class Sender:
    """Who the shop's e-mails are from. Raises ValueError unless it is one e-mail address."""

    def __init__(self, sender: str) -> None:
        self.address = parseaddr(sender)[1]
        self.domain = self.address.rpartition("@")[2]
        single_line = sender.isprintable()  # a line break would begin another header
        if "@" not in self.address or not self.domain or not single_line:
            raise ValueError(f"the sender {sender!r} is no e-mail address: set `options.sender`")
        self.header = sender


def compose(sender: Sender, order: Order, template: str, text: Text, key: str) -> EmailMessage:
    """The e-mail; repeats carry the same Message-ID, by which mail programs recognise them."""
    message = EmailMessage(policy=INTERNET)
    message["Message-ID"] = message_id(key, sender.domain)
    message["Date"] = formatdate(usegmt=True)
    message["From"] = sender.header
    message["To"] = f"order-{order.order_id}@{CUSTOMERS_DOMAIN}"
    message["Subject"] = text.subject
    message["Auto-Submitted"] = "auto-generated"  # RFC 3834: no out-of-office replies, please
    message["X-Order-ID"] = str(order.order_id)
    message["X-Template"] = template
    message.set_content(text.body)
    return message


def message_id(idempotency_key: str, domain: str) -> str:
    """The Message-ID of what is sent under this key: a dot-atom and a domain (RFC 5322, 3.6.4)."""
    return f"<{re.sub(r'[^A-Za-z0-9_-]+', '.', idempotency_key).strip('.')}@{domain}>"
