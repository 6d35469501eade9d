"""The parts of an invoice, from top to bottom: who and what, the lines, what they cost."""

from typing import Final
from xml.sax.saxutils import escape

from reportlab.lib.colors import HexColor
from reportlab.lib.enums import TA_RIGHT
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.platypus import Flowable, Paragraph, Spacer, Table, TableStyle

from handlers.invoices.fonts import BOLD, REGULAR, printable
from handlers.invoices.invoice import Invoice, Item, Seller, day
from handlers.money import amount

MARGIN: Final = 20 * mm
WIDTH: Final = A4[0] - 2 * MARGIN

INK = HexColor("#1f2933")
MUTED = HexColor("#66727f")
HAIRLINE = HexColor("#d5dae0")
SHADE = HexColor("#f3f5f7")

LONGEST_TEXT: Final = 260
"""Characters; a row must fit on a page."""

TEXT = ParagraphStyle("text", fontName=REGULAR, fontSize=9, leading=12.5, textColor=INK)
NUMBER = ParagraphStyle("number", TEXT, textColor=MUTED)
FACT = ParagraphStyle("fact", TEXT, fontSize=8.5)
FACT_NAME = ParagraphStyle("fact name", FACT, textColor=MUTED)
RIGHT = ParagraphStyle("right", TEXT, alignment=TA_RIGHT)
STRONG = ParagraphStyle("strong", TEXT, fontName=BOLD)
STRONG_RIGHT = ParagraphStyle("strong right", STRONG, alignment=TA_RIGHT)
SUM = ParagraphStyle("sum", STRONG_RIGHT, fontSize=11, leading=15)
SMALL = ParagraphStyle("small", TEXT, fontSize=7.5, leading=10.5, textColor=MUTED)
HEAD = ParagraphStyle("head", SMALL, fontName=BOLD)
HEAD_RIGHT = ParagraphStyle("head right", HEAD, alignment=TA_RIGHT)
SHOP = ParagraphStyle("shop", STRONG, fontSize=15, leading=19)
TITLE = ParagraphStyle("title", STRONG_RIGHT, fontSize=20, leading=24)

NO_PADDING = [
    ("LEFTPADDING", (0, 0), (-1, -1), 0),
    ("RIGHTPADDING", (0, 0), (-1, -1), 0),
    ("TOPPADDING", (0, 0), (-1, -1), 0),
    ("BOTTOMPADDING", (0, 0), (-1, -1), 0),
    ("VALIGN", (0, 0), (-1, -1), "TOP"),
]

ITEM_WIDTHS = (11 * mm, 74 * mm, 21 * mm, 32 * mm, 32 * mm)
FACT_WIDTHS = (27 * mm, 74 * mm)
"""An id with a prefix fits into a line."""


def body(invoice: Invoice, seller: Seller) -> list[Flowable]:
    """Everything between the margins. A new list for each document: building one uses it up."""
    return [
        _head(seller),
        Spacer(0, 9 * mm),
        _facts(invoice),
        Spacer(0, 9 * mm),
        _items(invoice),
    ]


def figure(minor: int, currency: str) -> str:
    """An amount without its currency, in thousands: 12,345.50."""
    whole, point, rest = amount(minor, currency).removeprefix(f"{currency} ").partition(".")
    return f"{int(whole):,}{point}{rest}"


def money(minor: int, currency: str) -> str:
    """An amount: SGD 12,345.50."""
    return f"{currency} {figure(minor, currency)}"


def _head(seller: Seller) -> Table:
    known = [*seller.address]
    if seller.tax_number is not None:
        known.append(f"Tax number {seller.tax_number}")
    shop = [_paragraph(seller.name, SHOP), Spacer(0, 1.5 * mm)]
    shop += [_paragraph(line, SMALL) for line in known]
    return Table(
        [[shop, _paragraph("INVOICE", TITLE)]], (WIDTH - 60 * mm, 60 * mm), style=NO_PADDING
    )


def _facts(invoice: Invoice) -> Table:
    to = [_paragraph("Billed to", HEAD), _paragraph("Customer", STRONG)]
    to.append(_paragraph(str(invoice.customer_id), SMALL))
    facts = {
        "Invoice number": invoice.number,
        "Invoice date": day(invoice.paid_at),
        "Order": str(invoice.order_id),
        "Ordered on": day(invoice.ordered_at),
        "Paid on": day(invoice.paid_at),
        "Transaction": invoice.transaction_id,
    }
    rows = [[_paragraph(name, FACT_NAME), _paragraph(fact, FACT)] for name, fact in facts.items()]
    told = Table(rows, FACT_WIDTHS, style=NO_PADDING)
    return Table([[to, told]], (WIDTH - sum(FACT_WIDTHS), sum(FACT_WIDTHS)), style=NO_PADDING)


def _items(invoice: Invoice) -> Table:
    currency = invoice.currency
    head = [
        _paragraph("#", HEAD),
        _paragraph("Article", HEAD),
        _paragraph("Quantity", HEAD_RIGHT),
        _paragraph(f"Unit price ({currency})", HEAD_RIGHT),
        _paragraph(f"Amount ({currency})", HEAD_RIGHT),
    ]
    items = [_item(number, item, currency) for number, item in enumerate(invoice.items, start=1)]
    total = money(invoice.total, currency)
    sums = [
        _sum("Total", total, SUM),
        _sum(f"Paid on {day(invoice.paid_at)}", total, RIGHT),
        _sum("Amount due", money(0, currency), STRONG_RIGHT),
    ]
    return Table([head, *items, *sums], ITEM_WIDTHS, style=_rules(len(sums)), repeatRows=1)


def _item(number: int, item: Item, currency: str) -> list[Flowable | list[Flowable]]:
    return [
        _paragraph(str(number), NUMBER),
        [_paragraph(item.name, TEXT), _paragraph(item.sku, SMALL)],
        _paragraph(f"{item.quantity:,}", RIGHT),
        _paragraph(figure(item.unit_price, currency), RIGHT),
        _paragraph(figure(item.amount, currency), RIGHT),
    ]


def _sum(name: str, value: str, style: ParagraphStyle) -> list[Flowable | str]:
    return [_paragraph(name, style), "", "", _paragraph(value, style), ""]


def _rules(sums: int) -> TableStyle:
    return TableStyle(
        [
            ("VALIGN", (0, 0), (-1, -1), "TOP"),
            ("BOTTOMPADDING", (0, 1), (-1, -1), 5),
            ("TOPPADDING", (0, -sums), (-1, -sums), 6),
            ("BACKGROUND", (0, 0), (-1, 0), SHADE),
            ("LINEBELOW", (0, 1), (-1, -sums - 1), 0.5, HAIRLINE),
            ("LINEABOVE", (0, -sums), (-1, -sums), 1, INK),
            # The sums never stand alone on a page.
            ("NOSPLIT", (0, -sums - 1), (-1, -1)),
            *(("SPAN", (0, -row), (2, -row)) for row in range(1, sums + 1)),
            *(("SPAN", (3, -row), (4, -row)) for row in range(1, sums + 1)),
        ]
    )


def _paragraph(text: str, style: ParagraphStyle) -> Paragraph:
    """Text from anywhere: what looks like markup in it is none."""
    return Paragraph(escape(printable(text, LONGEST_TEXT)), style)
