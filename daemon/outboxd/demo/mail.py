"""E-mails that customers got, as a ledger: which orders were told of, and how often."""

from email.parser import BytesHeaderParser
from pathlib import Path

from msgspec import Struct


class Mail(Struct, frozen=True, kw_only=True):
    """E-mails by what they are about; copies of one Message-ID are one e-mail sent repeatedly."""

    orders: frozenset[str] = frozenset()
    sent: int = 0
    message_ids: int = 0

    @property
    def repeated(self) -> int:
        """E-mails beyond one for a Message-ID."""
        return self.sent - self.message_ids

    @property
    def different_for_one_order(self) -> int:
        """Message-IDs beyond one for an order: not a repetition but a second confirmation."""
        return self.message_ids - len(self.orders)


class MailCount:
    """Adds them up, one by one. All of them have one template, or an order would get several."""

    def __init__(self) -> None:
        self.sent = 0
        self._orders: set[str] = set()
        self._message_ids: set[str] = set()

    def add(self, message_id: str, order_id: str) -> None:
        """One more was sent."""
        self.sent += 1
        self._orders.add(order_id)
        self._message_ids.add(message_id)

    def total(self) -> Mail:
        """All so far."""
        return Mail(
            orders=frozenset(self._orders), sent=self.sent, message_ids=len(self._message_ids)
        )


class MailReader:
    """Reads a Maildir again and again, each message once."""

    def __init__(self, maildir: Path) -> None:
        self._new = maildir / "new"
        self._seen: set[str] = set()
        self._count = MailCount()

    def read(self) -> Mail:
        """What has been delivered so far. Messages still being written are in tmp/, not here."""
        for path in self._new.iterdir() if self._new.is_dir() else ():
            if path.name not in self._seen:
                self._seen.add(path.name)
                self._count.add(*_headers(path))
        return self._count.total()


def _headers(path: Path) -> tuple[str, str]:
    with path.open("rb") as file:
        headers = BytesHeaderParser().parse(file, headersonly=True)
    return str(headers["Message-ID"]), str(headers["X-Order-ID"])
