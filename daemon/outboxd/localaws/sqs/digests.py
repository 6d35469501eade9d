"""The digests of a message: MD5, by which SDKs check what SQS understood, and SHA-256."""

from collections.abc import Mapping
from hashlib import md5, sha256
from struct import Struct

from outboxd.localaws.sqs.message import AttributeValue

_LENGTH = Struct(">I")
_STRING, _BINARY = b"\x01", b"\x02"


def body_md5(body: str) -> str:
    return md5(body.encode(), usedforsecurity=False).hexdigest()


def content_deduplication_id(body: str) -> str:
    """What a FIFO queue with content-based deduplication takes for the missing id."""
    return sha256(body.encode()).hexdigest()


def attributes_md5(attributes: Mapping[str, AttributeValue]) -> str | None:
    """The digest of message attributes; None if there are none.

    Algorithm: "Calculating the MD5 message digest for message attributes", SQS Developer Guide:
    by ascending name, each of name, data type and value as length (4 bytes, big endian) and bytes,
    with one byte for the transport type before the value.
    """
    if not attributes:
        return None
    digest = md5(usedforsecurity=False)
    for name in sorted(attributes):
        value = attributes[name]
        digest.update(_framed(name.encode()))
        digest.update(_framed(value.data_type.encode()))
        if value.binary_value is not None:
            digest.update(_BINARY + _framed(value.binary_value))
        else:
            digest.update(_STRING + _framed((value.string_value or "").encode()))
    return digest.hexdigest()


def _framed(data: bytes) -> bytes:
    return _LENGTH.pack(len(data)) + data
