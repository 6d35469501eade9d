"""Sizes: what is accepted fits into a message, whatever PostgreSQL makes of the payload."""

import json
from collections.abc import Iterator
from typing import Any, get_args

import msgspec
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outboxd import PublishRefused, publish
from outboxd.adapters.eventbridge.entries import eventbridge_entry
from outboxd.core.outbox import StoredEvent
from outboxd.core.outgoing import Message, message_of, utf8_bytes
from outboxd.core.settings import Envelope
from outboxd.ports.destination import Entry
from outboxd.producer import MAX_BYTES
from outboxd.producer.rows import Row, row_of
from outboxd.producer.sizes import check_size, sent_length
from tests.producer_scene import an_event, payloads, rows


@pytest.fixture
def connection(database: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database) as connection:
        yield connection


@pytest.mark.parametrize(
    "payload",
    [
        "x" * MAX_BYTES,
        "é" * (MAX_BYTES // 2),
        # jsonb spreads them: 700,000 bytes here are more than a million there, and 24,000 as well.
        [0] * 350_000,
        [1e300] * 4000,
        [1e-300] * 4000,
        "\uffff" * 200_000,  # sent as escapes of twice their length
    ],
    ids=["long", "multi-byte", "many", "large numbers", "small numbers", "escapes"],
)
def test_an_event_that_no_message_can_hold_is_refused(
    connection: psycopg.Connection[Any], payload: Any
) -> None:
    with pytest.raises(
        PublishRefused, match=rf"take \d+ bytes as a message, and the limit is {MAX_BYTES}; store"
    ):
        publish(connection, an_event(payload))


@pytest.mark.parametrize(
    "payload", ["x, " * 349_000, "1e99 " * 200_000, "😀" * 261_000, "\uffff" * 170_000]
)
def test_a_text_that_only_looks_as_if_it_grew_is_stored(
    database: str, connection: psycopg.Connection[Any], payload: str
) -> None:
    publish(connection, an_event(payload))
    connection.commit()

    assert payloads(database) == [payload]


def test_destinations_that_take_less_have_a_lower_limit(
    connection: psycopg.Connection[Any],
) -> None:
    publish(connection, an_event("x" * 262_144))
    with pytest.raises(PublishRefused, match="the limit is 262144"):
        publish(connection, an_event("x" * 262_144), max_bytes=262_144)
    publish(connection, an_event("x" * 260_000), max_bytes=262_144)


def as_stored(row: Row, payload: str) -> StoredEvent:
    return StoredEvent(
        key=1,
        seq=1,
        id=str(row.id),
        event_type=row.event_type,
        aggregate_type=row.aggregate_type,
        aggregate_id=row.aggregate_id,
        payload=payload,
        traceparent=row.headers["traceparent"],
        occurred_at="2026-01-01T00:00:00.000000Z",
        born_at=0.0,
        attempts=0,
        due_at=0.0,
        delivered_to=None,
    )


LIMIT = 262_144
TRACE = "00-5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8-01"
SOURCE = "s" * 256


@settings(max_examples=30)  # each is a quarter of a megabyte
@given(
    st.integers(0, 400),
    st.sampled_from(["x", "é", ", ", '"', "\n", "1e9", "\uffff"]),
    st.text(st.characters(min_codepoint=32, codec="utf-8"), min_size=1, max_size=255),
)
def test_what_is_accepted_fits_into_every_kind_of_message(
    margin: int, filling: str, name: str
) -> None:
    width = len(json.dumps(filling)) - 2
    payload = [filling * ((LIMIT - 4000 - margin) // width), 1, {"a": 2}]
    aggregate = "".join(c for c in name if c.isprintable()) or "x"
    try:
        row = row_of(an_event(payload, aggregate_id=aggregate), TRACE)
        size = check_size(row, LIMIT)
    except PublishRefused:
        return
    event = as_stored(row, json.dumps(payload, ensure_ascii=False))  # as PostgreSQL writes it
    for envelope in get_args(Envelope):
        message = message_of(event, envelope, SOURCE)
        assert isinstance(message, Message)
        assert message.size <= size <= LIMIT
        entry = eventbridge_entry(
            event, envelope, bus_name="shop", source=SOURCE, cloudevents_source=SOURCE
        )
        assert isinstance(entry, Entry)
        assert entry.size <= size


NUMBERS = [0, -1, 10**30, 1.5, 1e16, 1.5e300, -2.5e-300, 5e-324, 0.1, 123456789.125]
SPELLED = ["1.50e1", "1e0", "1E+2", "-0.0", "0e5", "12.340e-3", "1.0", "1" * 5000 + "e-4900"]


def test_the_length_that_a_payload_will_have_is_known(database: str) -> None:
    """As PostgreSQL says it, not as somebody remembers it."""
    texts = [
        *(msgspec.json.encode(number).decode() for number in NUMBERS),
        *SPELLED,
        r'{"a":[1,2,{"b":"c: d, é \u00e9 \n \u0001 \/"}],"c":null,"d":true,"e":{},"f":[]}',
        r'"\ud83d\ude00"',
    ]
    for text in texts:
        [(stored,)] = rows(database, "SELECT %s::jsonb::text", text)
        # One byte too many for some numbers of a single digit.
        assert utf8_bytes(stored) <= sent_length(text.encode()) <= utf8_bytes(stored) + 2, text
