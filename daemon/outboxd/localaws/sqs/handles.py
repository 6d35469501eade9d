"""Receipt handles: opaque to clients, and forgeable by none of their mistakes."""

from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from struct import Struct

from outboxd.localaws.sqs.errors import receipt_handle_is_invalid

KEY_BYTES = 16

# Version, the queue's random key, the message's serial number in it, the receipt's number.
_LAYOUT = Struct(f">H{KEY_BYTES}sQI")
_VERSION = 1


def receipt_handle(key: bytes, serial: int, receipt: int) -> str:
    """The handle of the `receipt`-th receive of message `serial` of the queue with this key."""
    return b64encode(_LAYOUT.pack(_VERSION, key, serial, receipt)).decode("ascii")


def opened(handle: str, key: bytes) -> tuple[int, int]:
    """Serial and receipt number. Raises ReceiptHandleIsInvalid, also for another queue's handle."""
    try:
        raw = b64decode(handle, validate=True)
    except (NotBase64, ValueError):
        raise receipt_handle_is_invalid(handle) from None
    if len(raw) != _LAYOUT.size:
        raise receipt_handle_is_invalid(handle)
    version, owner, serial, receipt = _LAYOUT.unpack(raw)
    if version != _VERSION or owner != key:
        raise receipt_handle_is_invalid(handle)
    return serial, receipt
