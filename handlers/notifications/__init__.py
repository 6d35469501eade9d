"""What the shop tells its customers: by e-mail, WhatsApp and push, once for each order and reason.

Each handler is registered with `inbox = "after"`: no transaction covers a mailbox, and a message
that comes twice is better than one that never comes.
"""

from handlers.notifications.confirmations import ConfirmationEmail, RequestedConfirmationEmail
from handlers.notifications.emails import CUSTOMERS_DOMAIN, message_id
from handlers.notifications.requests import RequestedNotification

__all__ = [
    "CUSTOMERS_DOMAIN",
    "ConfirmationEmail",
    "RequestedConfirmationEmail",
    "RequestedNotification",
    "message_id",
]
