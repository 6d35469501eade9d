"""What can never be published is refused before anything is sent, with what to mend."""

import dataclasses
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from uuid import uuid4

import msgspec
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outboxd import NewEvent, NewJob, PublishRefused, enqueue, publish
from outboxd.producer import MAX_DEPTH
from outboxd.producer.depth import deeper_than
from outboxd.producer.payloads import json_of
from tests.producer_scene import an_event, rows


@dataclasses.dataclass
class Measured:
    value: float


@pytest.fixture
def connection(database: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database) as connection:
        yield connection


def nested(levels: int) -> Any:
    value: Any = 0
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"type": ""}, "type must be a text of 1 to 128 characters"),
        ({"type": "x" * 129}, "type must be"),
        ({"type": None}, "type must be a text, and is the NoneType None"),
        ({"aggregate_type": ""}, "aggregate_type must be"),
        ({"aggregate_id": ""}, "aggregate_id must be"),
        ({"aggregate_id": 42}, r"aggregate_id must be a text, and is the int 42; give str\(...\)"),
        ({"aggregate_id": uuid4()}, "aggregate_id must be a text, and is the UUID"),
        ({"aggregate_id": "x" * 256}, "aggregate_id must be"),
        ({"aggregate_id": "a\0b"}, "aggregate_id holds"),
        ({"aggregate_id": "a\ud800b"}, "aggregate_id holds"),
        ({"id": str(uuid4())}, r"id must be a uuid\.UUID"),
        ({"type": "order\x1bplaced"}, "type holds"),
        ({"type": "order placed"}, "no white space and no control character: 'order placed'"),
        ({"type": "order.placed\n"}, "type holds"),
        ({"type": "order\u00a0placed"}, "type holds"),
        ({"type": "order\x85placed"}, "type holds"),
        ({"payload": object()}, "payload is not encodable as JSON.*give what msgspec encodes"),
        ({"payload": {"a": {1, object()}}}, "payload is not encodable"),
        ({"payload": {(1, 2): 3}}, "payload is not encodable"),
        ({"payload": "\ud800"}, "payload holds half of a surrogate pair"),
        ({"payload": {"a": ["nul \0"]}}, "NUL.*base64"),
        ({"payload": {"nul \0": 1}}, "NUL"),
        ({"payload": msgspec.Raw(b'"\\u0000"')}, "NUL"),
        ({"payload": msgspec.Raw(b'"\\ud800 alone"')}, "half of a surrogate pair"),
        ({"payload": msgspec.Raw(b'"\xed\xa0\x80"')}, "raw, but no valid JSON"),
        ({"payload": {"a": msgspec.Raw(b"{")}}, "payload is raw, but no valid JSON"),
        ({"payload": msgspec.Raw(b"[NaN]")}, "raw, but no valid JSON"),
        ({"payload": msgspec.Raw(b"1, 2")}, "raw, but no valid JSON"),
        ({"payload": msgspec.Raw(b"")}, "raw, but no valid JSON"),
        ({"payload": float("nan")}, "infinite or not a number"),
        ({"payload": {"a": [None, (1, float("inf"))]}}, "infinite or not a number"),
        ({"payload": Measured(float("-inf"))}, "infinite or not a number"),
        ({"payload": {"raw": msgspec.Raw(b"1"), "a": float("nan")}}, "infinite or not a number"),
        ({"payload": msgspec.Raw(b"[1e309]")}, "the number 1e309, which is beyond"),
        ({"payload": msgspec.Raw(b"-1E+99999999999999999999")}, "the number -1E"),
        ({"payload": msgspec.Raw(b"1e-20000")}, "the number 1e-20000, which is beyond"),
        ({"payload": 10**400}, "the number 1000"),
        ({"payload": nested(MAX_DEPTH + 1)}, f"nests more than {MAX_DEPTH}.*flatten"),
        ({"payload": nested(5000)}, "nests more than"),
        ({"payload": msgspec.Raw(b"[" * 5000 + b"]" * 5000)}, "nests more than"),
        ({"headers": {"a": "nul \0"}}, "NUL"),
        ({"headers": {"a": 1}}, "headers must be texts by name"),
        ({"headers": ["a"]}, "headers must be"),
    ],
)
def test_what_can_never_be_published_is_refused(
    connection: psycopg.Connection[Any], changes: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(PublishRefused, match=complaint):
        publish(connection, an_event(**{"payload": {}, **changes}))

    # Nothing was sent, so the transaction of the caller is as good as before.
    assert connection.execute("SELECT count(*) FROM outboxd.outbox_events").fetchone() == (0,)


@pytest.mark.parametrize(
    "payload",
    [
        r"a backslash before \u0000",
        {"a": r"\\u0000"},
        "😀 é \x01 \ufffe",
        msgspec.Raw(b'"\\ud83d\\ude00"'),
        msgspec.Raw(b' {"a": 1.50} '),
        None,
        [1.5, True, None],
        {"null": "null", "nan": "NaN"},
        Decimal("NaN"),  # encoded as a text
        "1e999 and " + "9" * 400,
        msgspec.Raw(b"1e308"),
        msgspec.Raw(b"1e-16000"),
        nested(MAX_DEPTH),
        ["[[[[" * 100, '{"' * 100, "\\" * 100, {'"[': 1}, *([[{}]] * 300)],
    ],
    ids=lambda payload: repr(payload)[:20],
)
def test_what_only_looks_dangerous_is_stored(
    database: str, connection: psycopg.Connection[Any], payload: Any
) -> None:
    publish(connection, NewEvent("t", "order", "1", payload))
    connection.commit()

    [(text,)] = rows(database, "SELECT payload::text FROM outboxd.outbox_events")
    assert json.loads(text, parse_int=float) == json.loads(
        msgspec.json.encode(payload), parse_int=float
    )


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"key": ""}, "key must be a text of 1 to 255"),
        ({"key": "a\x07"}, "key holds"),
        ({"key": 7}, "key must be a text, and is the int 7"),
        ({"type": "send mail"}, "type holds"),
        ({"payload": float("nan")}, "not a number"),
    ],
)
def test_a_job_is_checked_as_well(
    connection: psycopg.Connection[Any], changes: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(PublishRefused, match=complaint):
        enqueue(connection, NewJob(**{"type": "mail.send", "payload": 1, **changes}))


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=30,
)


def depth(value: Any) -> int:
    match value:
        case dict():
            return 1 + max(map(depth, value.values()), default=0)
        case list():
            return 1 + max(map(depth, value), default=0)
        case _:
            return 0


@given(json_values, st.integers(0, 6))
def test_depth_is_what_a_decoder_would_recurse(value: Any, levels: int) -> None:
    assert deeper_than(levels, msgspec.json.encode(value)) == (depth(value) > levels)


@given(json_values)
def test_json_that_is_accepted_is_the_value(value: Any) -> None:
    try:
        encoded = json_of("payload", value)
    except PublishRefused:
        assert "\0" in repr(value) or "\\x00" in repr(value)
        return
    assert json.loads(encoded) == value
