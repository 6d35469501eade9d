"""The customers' mailbox, read as a ledger: which orders were confirmed, and how often."""

from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime
from email.parser import BytesHeaderParser
from pathlib import Path

from msgspec import Struct

RECENT_EMAILS = 1000


class Delivery(Struct, frozen=True, order=True):
    """When an e-mail about an order was put into the mailbox, by this machine's clock."""

    at: datetime
    order_id: str


class Mail(Struct, frozen=True, kw_only=True):
    """E-mails by what they are about; copies of one Message-ID are one e-mail sent repeatedly.

    `recent` are the last deliveries, oldest first.
    """

    orders: frozenset[str] = frozenset()
    sent: int = 0
    message_ids: int = 0
    recent: tuple[Delivery, ...] = ()

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
        self._recent: deque[Delivery] = deque(maxlen=RECENT_EMAILS)

    def read(self) -> Mail:
        """What has been delivered so far. Messages still being written are in tmp/, not here."""
        if self._new.is_dir():
            self._recent.extend(sorted(self._read_new()))
        return Mail(
            orders=frozenset(order for _, order in self._seen.values()),
            sent=len(self._seen),
            message_ids=len({message_id for message_id, _ in self._seen.values()}),
            recent=tuple(self._recent),
        )

    def _read_new(self) -> Iterator[Delivery]:
        for path in self._new.iterdir():
            if path.name not in self._seen:
                _, order_id = self._seen[path.name] = _headers(path)
                yield Delivery(datetime.fromtimestamp(path.stat().st_mtime, UTC), order_id)


def _headers(path: Path) -> tuple[str, str]:
    with path.open("rb") as file:
        headers = BytesHeaderParser().parse(file, headersonly=True)
    return str(headers["Message-ID"]), str(headers["X-Order-ID"])
