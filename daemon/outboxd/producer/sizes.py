"""How large the message of an event will be, before there is one."""

import json

import msgspec

from outboxd.core.errors import PublishRefused
from outboxd.core.outgoing import utf8_bytes
from outboxd.producer.limits import ENVELOPE_BYTES
from outboxd.producer.numerals import expansion, integer, of_its_length
from outboxd.producer.rows import Row


def check_size(row: Row, limit: int) -> int:
    """The bytes of the message, body and attributes, or slightly more. Raises PublishRefused when
    they are above the limit: the relay could only give such an event up, long after the commit."""
    names = (row.event_type, row.aggregate_type, row.aggregate_id)
    attributes = (row.event_type, row.aggregate_id, row.headers.get("traceparent", ""))
    around = len(msgspec.json.encode(names)) + sum(map(utf8_bytes, attributes)) + ENVELOPE_BYTES
    size = around + _sent_size(row.payload, limit - around)
    if size > limit:
        raise PublishRefused(
            f"the event {row.event_type!r} of {row.aggregate_type} {row.aggregate_id} would take "
            f"{size} bytes as a message, and the limit is {limit}; store the payload elsewhere, in "
            "a table or in S3, and publish a reference to it"
        )
    return size


def _sent_size(payload: bytes, room: int) -> int:
    """Counting colons, commas and exponents in texts too is only an upper bound, so a payload near
    the limit is looked at."""
    growing = payload.count(b":") + payload.count(b",") + expansion(payload) + _escapes(payload)
    size = len(payload) + growing
    return size if size <= room else sent_length(payload)


def sent_length(payload: bytes) -> int:
    """The length of the JSON as PostgreSQL gives it back, a blank after each colon and comma,
    numbers without exponents, characters rather than their escapes, and as the relay sends it."""
    spelled = json.loads(payload, parse_float=of_its_length, parse_int=integer)
    stored = json.dumps(spelled, ensure_ascii=False).encode()
    return len(stored) + _escapes(stored)


def _escapes(payload: bytes) -> int:
    """U+FFFE and U+FFFF, which SQS refuses, leave as six ASCII characters rather than three bytes
    (core.outgoing)."""
    return 3 * (payload.count(b"\xef\xbf\xbe") + payload.count(b"\xef\xbf\xbf"))
