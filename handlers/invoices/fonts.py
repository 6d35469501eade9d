"""The letters of invoices: Bitstream Vera, which comes with reportlab and goes into each PDF.

It has the letters of Western Europe and little more, not those of Polish, Greek, Thai or Chinese.
What it lacks is written as `?`, as a font would leave a gap that nobody notices; the SKU, which is
ASCII, still tells the article. A shop that sells under such names registers a font of its own here.
"""

import unicodedata
from threading import Lock
from typing import Final

from reportlab.pdfbase.pdfmetrics import registerFont
from reportlab.pdfbase.ttfonts import TTFont

REGULAR: Final = "Vera"
BOLD: Final = "VeraBd"

MISSING: Final = "?"

DRAWING = Lock()
"""Held while a document is made: reportlab keeps its fonts in tables that all threads share. Two
threads would not be faster, as all of it is Python."""


def _registered(name: str) -> frozenset[str]:
    font = TTFont(name, f"{name}.ttf")
    registerFont(font)
    return frozenset(map(chr, font.face.charToGlyph))


LETTERS = _registered(REGULAR) & _registered(BOLD)


def printable(text: str, most: int) -> str:
    """The text on one line, at most so many characters of it, in letters that the fonts have."""
    # Composed: a letter and its accent are one in the font, if it has them.
    line = " ".join(unicodedata.normalize("NFC", text).split())
    if len(line) > most:
        line = f"{line[: most - 1]}…"
    return "".join(letter if letter in LETTERS else MISSING for letter in line)
