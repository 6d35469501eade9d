"""The customers' mailbox, read as a ledger: which orders were confirmed, and how often."""

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


class MailReader:
    """Reads a Maildir again and again, each message once."""

    def __init__(self, maildir: Path) -> None:
        self._new = maildir / "new"
        self._seen: dict[str, tuple[str, str]] = {}

    def read(self) -> Mail:
        """What has been delivered so far. Messages still being written are in tmp/, not here."""
        if self._new.is_dir():
            for path in self._new.iterdir():
                if path.name not in self._seen:
                    self._seen[path.name] = _headers(path)
        return Mail(
            orders=frozenset(order for _, order in self._seen.values()),
            sent=len(self._seen),
            message_ids=len({message_id for message_id, _ in self._seen.values()}),
        )


def _headers(path: Path) -> tuple[str, str]:
    with path.open("rb") as file:
        headers = BytesHeaderParser().parse(file, headersonly=True)
    return str(headers["Message-ID"]), str(headers["X-Order-ID"])
