import json
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outboxd.core.outbox import StoredEvent
from outboxd.core.outgoing import ILLEGAL, attributes_of, body_of, utf8_bytes


def an_event(payload: str = '{"amount": 12.50}', **changes: object) -> StoredEvent:
    values: dict[str, object] = {
        "key": 1,
        "seq": 1,
        "id": "0194d0c0-0000-7000-8000-000000000001",
        "event_type": "order.placed",
        "aggregate_type": "order",
        "aggregate_id": "o-1",
        "payload": payload,
        "traceparent": None,
        "occurred_at": "2026-01-01T00:00:00.000000Z",
        "born_at": 0.0,
        "attempts": 0,
        "due_at": 0.0,
        "delivered_to": None,
    }
    return StoredEvent(**{**values, **changes})  # type: ignore[arg-type]


def test_an_event_has_exactly_these_keys_and_its_payload_untouched() -> None:
    body = body_of(an_event(), "event")

    assert body == (
        '{"id":"0194d0c0-0000-7000-8000-000000000001","type":"order.placed",'
        '"aggregate_type":"order","aggregate_id":"o-1",'
        '"occurred_at":"2026-01-01T00:00:00.000000Z","payload":{"amount": 12.50}}'
    )


def test_a_job_has_an_id_a_type_and_a_payload() -> None:
    body = body_of(an_event("[1, 2]"), "job")

    assert body == (
        '{"id":"0194d0c0-0000-7000-8000-000000000001","type":"order.placed","payload":[1, 2]}'
    )


TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_cloudevents_have_what_their_specification_asks_for() -> None:
    body = body_of(an_event(traceparent=TRACE), "cloudevents", source="/shop/orders")

    assert body == (
        '{"specversion":"1.0","id":"0194d0c0-0000-7000-8000-000000000001",'
        '"source":"/shop/orders","type":"order.placed","time":"2026-01-01T00:00:00.000000Z",'
        f'"subject":"o-1","aggregatetype":"order","traceparent":"{TRACE}",'
        '"datacontenttype":"application/json","data":{"amount": 12.50}}'
    )


def test_attributes_of_cloudevents_that_would_be_empty_are_left_out() -> None:
    body = body_of(an_event(aggregate_type="", aggregate_id=""), "cloudevents")

    assert not {"subject", "aggregatetype", "traceparent"} & set(json.loads(body))


@pytest.mark.parametrize("envelope", ["event", "job"])
def test_a_trace_is_in_the_body_where_there_are_no_attributes(
    envelope: Literal["event", "job"],
) -> None:
    event = an_event(traceparent=TRACE)

    assert "traceparent" not in json.loads(body_of(event, envelope))
    assert json.loads(body_of(event, envelope, traced=True))["traceparent"] == TRACE


def test_cloudevents_name_their_content_type() -> None:
    assert attributes_of(an_event(), "cloudevents") == {
        "event_type": "order.placed",
        "aggregate_id": "o-1",
        "content-type": "application/cloudevents+json; charset=utf-8",
    }


@given(st.text(), st.text())
def test_every_body_is_json_that_sqs_takes(name: str, text: str) -> None:
    # As jsonb writes it: other characters than controls, quotes and backslashes stand as they are.
    payload = json.dumps({"text": text}, ensure_ascii=False)

    body = body_of(an_event(payload, aggregate_id=name), "event")

    assert ILLEGAL.search(body) is None
    assert json.loads(body)["payload"] == {"text": text}
    assert json.loads(body)["aggregate_id"] == name
    assert utf8_bytes(body) == len(body.encode())


@pytest.mark.parametrize(
    ("changes", "attributes"),
    [
        ({}, {"event_type": "order.placed", "aggregate_id": "o-1"}),
        ({"aggregate_id": ""}, {"event_type": "order.placed"}),
        ({"traceparent": "\x01"}, {"event_type": "order.placed", "aggregate_id": "o-1"}),
        ({"traceparent": ""}, {"event_type": "order.placed", "aggregate_id": "o-1"}),
        (
            {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
            {
                "event_type": "order.placed",
                "aggregate_id": "o-1",
                "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            },
        ),
    ],
)
def test_attributes_that_cannot_travel_are_left_out(
    changes: dict[str, str], attributes: dict[str, str]
) -> None:
    assert attributes_of(an_event(**changes)) == attributes
