"""Whatever a body holds, it yields an event or a reason that a person understands."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from outboxd.core.envelopes import Malformed, open_envelope
from tests.core.envelope_roads import (
    TOPIC,
    cloudevent,
    event,
    eventbridge,
    job,
    message,
    sns,
)


def without(body: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name != key}


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ({}, "neither an event nor a job, nor from SNS, EventBridge or CloudEvents"),
        ([1], "neither"),
        ("hello", "no JSON: "),
        ("", "no JSON: "),
        ('{"id": "1", "type": "t", "payload": ' + "[" * 100_000, "recursion"),
        (sns("hello"), f"no JSON: .*in an SNS notification from {TOPIC}"),
        (sns({"id": "1"}), "required field `type` .in an SNS notification"),
        (sns(job("")), "`id` is empty .*in an SNS notification"),
        (sns(job("1"), Message={"id": "1"}), r"SNS notification: Expected `str`.*\$.Message"),
        (without(sns(job("1")), "Message"), "SNS notification: .*`Message`"),
        (sns("", Type="SubscriptionConfirmation"), f"confirm the subscription of {TOPIC}"),
        (sns("", Type="UnsubscribeConfirmation"), "UnsubscribeConfirmation"),
        (sns("", Type="Something"), "neither"),
        (without(eventbridge({}), "id"), "EventBridge event: .*`id`"),
        (without(eventbridge({}), "source"), "EventBridge event: .*`source`"),
        (without(eventbridge({}), "time"), "EventBridge event: .*`time`"),
        (eventbridge({}, time="2024-05-01T12:00:00"), "`time` has no time zone"),
        (eventbridge({}, detail_type=""), "`detail-type` is empty"),
        (eventbridge({}, resources="17"), r"EventBridge event: .*\$.resources"),
        (eventbridge(event("")), "`id` is empty .*in an EventBridge event from shop.orders"),
        (sns(eventbridge(event(""))), "in an EventBridge event from .*, in an SNS notification"),
        (cloudevent("1", specversion="0.3"), "`specversion`"),
        (cloudevent("1", specversion=1.0), "`specversion`"),
        (cloudevent("1", data_base64="aGk="), "`data_base64`"),
        (cloudevent(""), "`id` is empty"),
        (cloudevent("1", source=""), "`source` is empty"),
        (cloudevent("1", type="a\0b"), "`type` .* NUL"),
        (without(cloudevent("1"), "source"), "CloudEvents: .*`source`"),
        (cloudevent("1", time="2024-05-01T12:00:00"), "`time` has no time zone"),
        (cloudevent("1", subject=17), r"CloudEvents: .*\$.subject"),
    ],
)
def test_the_reason_names_what_is_wrong_and_where(body: Any, complaint: str) -> None:
    with pytest.raises(Malformed, match=complaint):
        open_envelope(message(body if isinstance(body, str) else json.dumps(body)))


def test_a_reason_never_holds_the_address_that_confirms_a_subscription() -> None:
    body = sns("", Type="SubscriptionConfirmation", SubscribeURL="https://x/?Token=secret")
    with pytest.raises(Malformed) as caught:
        open_envelope(message(body))
    assert "secret" not in str(caught.value)


def test_three_envelopes_are_opened_and_a_fourth_is_not() -> None:
    three = sns(sns(sns(job("1"))))
    assert open_envelope(message(three)).type == "order.paid"
    with pytest.raises(Malformed, match="too deep"):
        open_envelope(message(sns(three)))
    with pytest.raises(Malformed, match="too deep"):
        open_envelope(message(eventbridge(eventbridge(eventbridge(eventbridge(event("1")))))))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=10,
)
WHOLE = st.sampled_from([event("1"), job("1"), cloudevent("1"), eventbridge({}), sns("")])
KEYS = sorted(
    {*event(""), *sns(""), *eventbridge(None), *cloudevent(""), "data_base64", "traceparent"}
)


def _wrapped(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Envelopes with keys of every kind set to anything, around one another."""
    damage = st.dictionaries(st.sampled_from(KEYS), JSON | inner, max_size=2)
    around = st.one_of(inner.map(sns), inner.map(eventbridge), inner.map(lambda i: i))
    return st.tuples(around, damage).map(lambda pair: pair[0] | pair[1])


BODIES = st.recursive(WHOLE, _wrapped, max_leaves=4).map(json.dumps)
TORN = st.tuples(BODIES, st.integers(0, 400)).map(lambda pair: pair[0][: pair[1]])
BYTES = st.binary().map(lambda data: data.decode("utf-8", "surrogateescape"))


@given(st.one_of(BODIES, TORN, BYTES, JSON.map(json.dumps), st.text()))
@example(json.dumps(eventbridge({"id": 10**400})))
@example(json.dumps(cloudevent("1", subject="\ud800")))
def test_nothing_but_an_event_or_malformed_ever_comes_out(body: str) -> None:
    try:
        incoming = open_envelope(message(body))
    except Malformed:
        return
    assert incoming.occurred_at.tzinfo is not None
    assert incoming.type
    assert incoming.id == open_envelope(message(body)).id
    json.loads(bytes(incoming.payload))
