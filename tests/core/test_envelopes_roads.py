"""The same event comes out of every road."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outboxd.core.envelopes import NAMESPACE, Incoming, open_envelope
from tests.core.envelope_roads import (
    SENT_AT,
    cloudevent,
    event,
    eventbridge,
    job,
    message,
    sns,
)

ID = "0190f5fe-7c00-7a00-8000-000000000001"

Wrap = Callable[[dict[str, Any]], dict[str, Any]]

AROUND: dict[str, Wrap] = {
    "SQS, or SNS with raw delivery": lambda inner: inner,
    "SNS": sns,
    "EventBridge": eventbridge,
    "EventBridge to SNS": lambda inner: sns(eventbridge(inner)),
    "SNS to EventBridge": lambda inner: eventbridge(sns(inner)),
    "SNS to EventBridge to SNS": lambda inner: sns(eventbridge(sns(inner))),
    "SNS to SNS": lambda inner: sns(sns(inner)),
}
PAYLOADS = {
    "an object": {"total": 4200, "lines": [{"sku": "serum", "note": 'a "quoted" \\ line\n'}]},
    "an object with an id of its own": {"id": 5, "event_id": "e", "type": "gift"},
    "null": None,
    "text beyond ASCII": "größer 🧴 \ufffe",
}


def facts(incoming: Incoming) -> tuple[Any, ...]:
    """What a handler sees; payloads are compared as JSON, since escapes may differ."""
    return (
        incoming.id,
        incoming.type,
        incoming.aggregate_type,
        incoming.aggregate_id,
        incoming.occurred_at,
        json.loads(bytes(incoming.payload)),
    )


def opened(body: str | dict[str, Any]) -> Incoming:
    return open_envelope(message(body))


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
@pytest.mark.parametrize("wrap", AROUND.values(), ids=AROUND)
def test_an_event_is_the_same_whatever_the_road(wrap: Wrap, payload: Any) -> None:
    moment = datetime.fromtimestamp(SENT_AT, UTC)
    expected = (UUID(ID), "order.paid", "order", "17", moment, payload)
    assert facts(opened(wrap(event(ID, payload)))) == expected
    assert facts(opened(wrap(cloudevent(ID, payload)))) == expected


@pytest.mark.parametrize("identity", [ID, "17"])
@pytest.mark.parametrize("make", [event, job, cloudevent])
@pytest.mark.parametrize("wrap", AROUND.values(), ids=AROUND)
def test_every_envelope_of_ours_is_the_same_whatever_the_road(
    wrap: Wrap, make: Callable[..., dict[str, Any]], identity: str
) -> None:
    inner = make(identity, {"total": 5})
    assert facts(opened(wrap(inner))) == facts(opened(inner))


def test_a_detail_that_is_no_envelope_is_the_payload() -> None:
    incoming = opened(eventbridge({"id": ID, "total": 5}))
    assert facts(incoming) == (
        UUID(ID),
        "order.paid",
        "",
        "17",
        datetime.fromtimestamp(SENT_AT, UTC),
        {"id": ID, "total": 5},
    )
    assert facts(opened(sns(eventbridge({"id": ID, "total": 5})))) == facts(incoming)


BRIDGE_ID = "6a7e8feb-b491-4cf7-a9f1-bf3703467718"
OTHER_ID = "0190f5fe-7c00-7a00-8000-000000000002"


@pytest.mark.parametrize(
    ("detail", "identity"),
    [
        ({"id": ID, "event_id": OTHER_ID}, ID),
        ({"event_id": OTHER_ID}, OTHER_ID),
        ({"id": None, "event_id": OTHER_ID}, OTHER_ID),
        ({"id": "", "event_id": OTHER_ID}, OTHER_ID),
        ({"id": {"nested": 1}, "event_id": [1]}, BRIDGE_ID),
        ({"id": True, "event_id": 1.5}, BRIDGE_ID),
        ({}, BRIDGE_ID),
        ([1], BRIDGE_ID),
        ("text", BRIDGE_ID),
        (None, BRIDGE_ID),
    ],
)
def test_the_id_is_the_details_own_or_else_eventbridges(detail: Any, identity: str) -> None:
    assert opened(eventbridge(detail)).id == UUID(identity)


def test_no_resources_no_aggregate() -> None:
    assert opened(eventbridge({}, resources=[])).aggregate_id == ""


def test_a_detail_may_have_the_keys_of_a_job_and_mean_something_else() -> None:
    """A gift card has a type, and may well be called a payload."""
    detail = {"id": ID, "type": "gift", "payload": "card"}
    incoming = opened(eventbridge(detail))
    assert incoming.type == "order.paid"
    assert json.loads(bytes(incoming.payload)) == detail


def test_an_event_of_ours_counts_whatever_its_detail_type_says() -> None:
    assert opened(eventbridge(event(ID), detail_type="anything")).type == "order.paid"


@pytest.mark.parametrize(
    ("body", "source"),
    [
        (event("17"), "order.paid"),
        (job("17"), "order.paid"),
        (sns(job("17")), "order.paid"),
        (eventbridge({"id": "17"}), "shop.orders order.paid"),
        (eventbridge({"id": 17}), "shop.orders order.paid"),
        (eventbridge({"event_id": "17"}), "shop.orders order.paid"),
        (cloudevent("17"), "/shop/orders"),
    ],
)
def test_an_id_that_is_no_uuid_is_unique_within_its_source(
    body: dict[str, Any], source: str
) -> None:
    assert opened(body).id == uuid5(uuid5(NAMESPACE, source), "17")


def test_rows_that_are_numbered_by_type_do_not_meet() -> None:
    paid, refunded = (
        opened(eventbridge({"id": 17}, detail_type=kind)).id for kind in ("paid", "refunded")
    )
    assert paid != refunded


def test_cloudevents_without_what_is_optional() -> None:
    body = cloudevent("17")
    for key in ("subject", "time", "datacontenttype", "aggregatetype", "data"):
        del body[key]
    bare = opened(body)
    nulls = opened(body | dict.fromkeys(["subject", "time", "data_base64", "aggregatetype"]))
    assert facts(bare) == facts(nulls)
    assert (bare.aggregate_type, bare.aggregate_id) == ("", "")
    assert bare.occurred_at.timestamp() == SENT_AT
    assert bytes(bare.payload) == b"null"


def test_cloudevents_may_have_an_extension_called_payload() -> None:
    assert json.loads(bytes(opened(cloudevent(ID, 5, payload="x")).payload)) == 5
    assert json.loads(bytes(opened(eventbridge(cloudevent(ID, 5, payload="x"))).payload)) == 5


@given(st.text(min_size=1).filter(lambda text: "\0" not in text), st.sampled_from([*AROUND]))
def test_any_id_is_stable_on_any_road(identity: str, road: str) -> None:
    for make in (event, cloudevent):
        inner = make(identity, 1)
        again = make(identity, 2)
        assert opened(AROUND[road](inner)).id == opened(again).id
