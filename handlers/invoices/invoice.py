"""What an invoice says, without a word on what it looks like."""

from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from msgspec import Struct

MOST_LINES: Final = 9
LONGEST_LINE: Final = 120


class Seller(Struct, frozen=True):
    """Who sends the invoice, as the head of it says; `address` is line by line."""

    name: str
    address: tuple[str, ...]
    tax_number: str | None = None


class Item(Struct, frozen=True):
    """A line of the order; `unit_price` is in the minor unit of the invoice's currency."""

    name: str
    sku: str
    quantity: int
    unit_price: int

    @property
    def amount(self) -> int:
        """What the line costs, in the minor unit."""
        return self.quantity * self.unit_price


class Invoice(Struct, frozen=True, kw_only=True):
    """The facts of a paid order, none of which a cancellation or a refund changes: what is given
    back later is another document's business."""

    order_id: UUID
    customer_id: UUID
    currency: str
    ordered_at: datetime
    paid_at: datetime
    transaction_id: str
    items: tuple[Item, ...]

    @property
    def total(self) -> int:
        """The sum of the lines, in the minor unit."""
        return sum(item.amount for item in self.items)

    @property
    def number(self) -> str:
        """The day of the payment and the beginning of the order's id: INV-20260102-9F1C2B3D4E5F.

        It is the same whenever it is asked for, and needs no counter that two handlers could fight
        over. Where the law wants numbers without gaps, count them in a table, in the transaction
        that marks the order as paid.
        """
        return f"INV-{_utc(self.paid_at):%Y%m%d}-{self.order_id.hex[:12].upper()}"

    @property
    def key(self) -> str:
        """Where it is kept in the bucket: by year and month of the payment, in UTC."""
        return f"invoices/{_utc(self.paid_at):%Y/%m}/{self.order_id}.pdf"


def seller_of(text: str, tax_number: str | None = None) -> Seller:
    """The seller of a text with the name in its first line and the address in the others, which is
    how an option or a variable of the environment can hold it. Raises ValueError."""
    name, *address = [line.strip() for line in text.strip().split("\n")]
    longest = max(len(line) for line in (name, *address, tax_number or ""))
    if name == "" or address == [] or len(address) >= MOST_LINES or longest > LONGEST_LINE:
        raise ValueError(
            "`seller` has the name in its first line and the address in the others, "
            f"{MOST_LINES} lines of {LONGEST_LINE} characters at most; "
            f"found {len(address) + 1} lines, the longest of {longest} characters"
        )
    return Seller(name, tuple(address), tax_number)


def day(moment: datetime) -> str:
    """The day in UTC, year first: no month's name, which depends on the machine's language."""
    return _utc(moment).date().isoformat()


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)
