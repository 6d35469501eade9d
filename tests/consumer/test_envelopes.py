"""Bodies become events, or are told apart as malformed; nothing else ever comes out."""

import json
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outboxd.core.envelopes import Incoming, Malformed, event_id, open_envelope
from outboxd.core.messages import ReceivedMessage
from tests.consumer.scene import event_body


def a_message(body: str, sent_at: float = 1_700_000_000.5) -> ReceivedMessage:
    return ReceivedMessage(
        message_id="m", receipt_handle="r", receive_count=1, sent_at=sent_at, body=body
    )


def opened(body: str) -> Incoming:
    return open_envelope(a_message(body))


def test_an_event_keeps_what_its_producer_said() -> None:
    identity = uuid4()
    incoming = opened(event_body("order.paid", {"total": 5}, identity))
    assert (incoming.id, incoming.type) == (identity, "order.paid")
    assert (incoming.aggregate_type, incoming.aggregate_id) == ("order", "17")
    assert incoming.occurred_at.isoformat() == "2024-05-01T12:00:00+00:00"
    assert json.loads(bytes(incoming.payload)) == {"total": 5}


def test_a_job_happened_when_it_was_sent() -> None:
    incoming = opened('{"id": "1", "type": "email.send", "payload": [1]}')
    assert (incoming.aggregate_type, incoming.aggregate_id) == ("", "")
    assert incoming.occurred_at.timestamp() == 1_700_000_000.5


def test_keys_of_a_newer_producer_are_ignored() -> None:
    body = json.loads(event_body()) | {"trace": "00-1", "schema": {"v": 2}}
    assert opened(json.dumps(body)).type == "order.created"


def test_an_id_that_is_no_uuid_always_becomes_the_same_uuid() -> None:
    first = opened('{"id": "17", "type": "order.created", "payload": 1}')
    again = opened('{"id": "17", "type": "order.created", "payload": 2}')
    other = opened('{"id": "17", "type": "invoice.created", "payload": 1}')
    assert first.id == again.id
    assert first.id != other.id
    assert first.id.version == 5


@given(st.uuids())
def test_a_uuid_is_itself_however_it_is_written(identity: UUID) -> None:
    for text in (str(identity), str(identity).upper(), identity.hex):
        assert event_id(text, "anywhere") == identity


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=20,
)
KEYS = st.sampled_from(
    ["id", "type", "payload", "aggregate_type", "aggregate_id", "occurred_at", "detail", "Message"]
)
ENVELOPES = st.dictionaries(KEYS, JSON).map(json.dumps)
TORN = st.tuples(ENVELOPES, st.integers(0, 200)).map(lambda pair: pair[0][: pair[1]])
ANY_TEXT = st.text(st.characters())  # lone surrogates and NUL among them


@given(st.one_of(ANY_TEXT, ENVELOPES, TORN, JSON.map(json.dumps)), st.floats())
def test_no_body_escapes(body: str, sent_at: float) -> None:
    try:
        incoming = open_envelope(a_message(body, sent_at))
    except Malformed:
        return
    assert incoming.occurred_at.tzinfo is not None


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"id": None}, "id"),
        ({"type": 5}, "type"),
        ({"aggregate_id": 17}, "aggregate_id"),
        ({"occurred_at": "yesterday"}, "occurred_at"),
        ({"occurred_at": "2024-05-01T12:00:00"}, "time zone"),
        ({"id": "a\0b"}, "NUL"),
        ({"type": ""}, "empty"),
    ],
)
def test_the_complaint_names_what_is_wrong(change: dict[str, Any], complaint: str) -> None:
    body = json.loads(event_body()) | change
    with pytest.raises(Malformed, match=complaint):
        opened(json.dumps(body))


@pytest.mark.parametrize("key", ["id", "type", "payload", "aggregate_type", "occurred_at"])
def test_an_event_without_one_of_its_keys_is_malformed(key: str) -> None:
    body = json.loads(event_body())
    del body[key]
    with pytest.raises(Malformed):
        opened(json.dumps(body))
