"""The invoice on paper: A4, as many pages as it takes, the same bytes for the same facts."""

from io import BytesIO
from typing import Final

from reportlab.lib.pagesizes import A4
from reportlab.lib.units import mm
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import BaseDocTemplate, Frame, PageTemplate

from handlers.invoices.fonts import DRAWING, REGULAR, printable
from handlers.invoices.invoice import Invoice, Seller
from handlers.invoices.parts import HAIRLINE, MARGIN, MUTED, WIDTH, body

FOOT: Final = 25 * mm
"""Kept free at the bottom of each page."""

LONGEST_SELLER: Final = 36
"""Characters of the name, in the line at the foot."""


def render(invoice: Invoice, seller: Seller) -> bytes:
    """The PDF. Neither the clock nor chance has a part in it, so a second one is the same, as long
    as the seller and the version of reportlab are."""
    with DRAWING:
        # Twice, because the first page already says how many there are.
        pages = _build(invoice, seller, pages=0, file=BytesIO())
        file = BytesIO()
        _build(invoice, seller, pages=pages, file=file)
    return file.getvalue()


def _build(invoice: Invoice, seller: Seller, *, pages: int, file: BytesIO) -> int:
    """Write the document into the file; the number of its pages."""

    def foot(canvas: Canvas, document: BaseDocTemplate) -> None:
        _foot(canvas, f"Page {document.page} of {pages}", invoice, seller)

    document = BaseDocTemplate(
        file,
        pagesize=A4,
        invariant=1,
        title=f"Invoice {invoice.number}",
        author=printable(seller.name, LONGEST_SELLER),
        subject=f"Order {invoice.order_id}",
        creator="outboxd shop",
        lang="en",
    )
    # No padding, which would set the text off from the lines.
    height = A4[1] - MARGIN - FOOT
    frame = Frame(MARGIN, FOOT, WIDTH, height, 0, 0, 0, 0)
    document.addPageTemplates([PageTemplate(frames=[frame], onPage=foot)])
    document.build(body(invoice, seller))
    return document.page


def _foot(canvas: Canvas, place: str, invoice: Invoice, seller: Seller) -> None:
    canvas.saveState()
    canvas.setStrokeColor(HAIRLINE)
    canvas.setLineWidth(0.5)
    canvas.line(MARGIN, FOOT - 6 * mm, MARGIN + WIDTH, FOOT - 6 * mm)
    canvas.setFillColor(MUTED)
    canvas.setFont(REGULAR, 7.5)
    name = printable(seller.name, LONGEST_SELLER)
    canvas.drawString(MARGIN, FOOT - 11 * mm, f"{name} · {invoice.number} · all dates in UTC")
    canvas.drawRightString(MARGIN + WIDTH, FOOT - 11 * mm, place)
    canvas.restoreState()
