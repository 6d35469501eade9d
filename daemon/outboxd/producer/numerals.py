"""Numbers of JSON that are longer, or larger, than they look.

PostgreSQL's jsonb stores a number with all of its digits: 1e300 comes back as 301 of them.
"""

import json
import re
from decimal import Decimal, InvalidOperation

from outboxd.core.errors import PublishRefused
from outboxd.producer.limits import MAX_EXPONENT, MAX_SCALE

_SUSPECT = re.compile(rb"[0-9]{300}|[0-9][eE][+-]?[0-9]{3}")
"""Only raw JSON and Python's unlimited integers come near the limits; texts may look like them."""

_EXPONENT = re.compile(rb"[0-9][eE][+-]?([0-9]{1,9})")

_ALIKE = bytes.maketrans(b"123456789E", b"000000000e")
_LONG = b"0" * 300

_PRINTABLE_DIGITS = 4000
"""Python converts at most 4,300 digits to an integer (sys.set_int_max_str_digits)."""


def check_numbers(field: str, encoded: bytes) -> None:
    """Raises PublishRefused for a number that consumers or PostgreSQL cannot take."""
    alike = encoded.translate(_ALIKE)  # what it lacks is found out faster than by the expression
    if b"0e" not in alike and _LONG not in alike:
        return
    if _SUSPECT.search(encoded) is None:
        return

    def check(text: str) -> None:
        if _beyond(text):
            raise PublishRefused(
                f"{field} holds the number {text:.40}, which is beyond what consumers (64-bit "
                "floats) or PostgreSQL (numeric) can hold; send it as a text"
            )

    json.loads(encoded, parse_float=check, parse_int=check)


def _beyond(text: str) -> bool:
    try:
        number = Decimal(text)
    except InvalidOperation:  # an exponent that not even Decimal holds
        return True
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)  # JSON has no others
    return number.adjusted() > MAX_EXPONENT or -exponent > MAX_SCALE


def expansion(encoded: bytes) -> int:
    """At most so many bytes does PostgreSQL add by writing exponents out."""
    if b"0e" not in encoded.translate(_ALIKE):
        return 0
    return sum(int(digits) + 2 for digits in _EXPONENT.findall(encoded))


def of_its_length(text: str) -> str:
    """Any text whose JSON is as long as this number will be; a byte longer for some digits."""
    return "0" * (len(format(Decimal(text), "f")) - 2)


def integer(text: str) -> int | str:
    """The integer or, where Python refuses to convert one so long, a text of its length."""
    return int(text) if len(text) < _PRINTABLE_DIGITS else of_its_length(text)
