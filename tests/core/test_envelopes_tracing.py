"""A trace is taken from wherever the road carried it, and no event ever dies of one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outboxd.core.envelopes import open_envelope
from outboxd.core.messages import Attribute, ReceivedMessage
from outboxd.ports.handling import Call, Context
from tests.core.envelope_roads import cloudevent, event, eventbridge, job, message, sns


def trace(number: int) -> str:
    return f"00-{number:032x}-{number:016x}-01"


def attributes(value: object) -> dict[str, Any]:
    return {"MessageAttributes": {"traceparent": {"Type": "String", "Value": value}}}


X_RAY = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"
CARRIED = {
    "SQS attribute": message(job("1"), {"traceparent": trace(1)}),
    "AWSTraceHeader": message(job("1"), trace_header=trace(1)),
    "SNS attribute": message(sns(job("1"), **attributes(trace(1)))),
    "detail with an event": message(eventbridge(event("1") | {"traceparent": trace(1)})),
    "detail as payload": message(eventbridge({"traceparent": trace(1)})),
    "CloudEvents extension": message(cloudevent("1", traceparent=trace(1))),
    "CloudEvents in SNS over EventBridge": message(
        sns(eventbridge(cloudevent("1", traceparent=trace(1))))
    ),
    "invalid outside, valid inside": message(
        sns(job("1"), **attributes(trace(1))), {"traceparent": "00-x"}, trace_header=X_RAY
    ),
    "several: the last hop is nearest": message(
        sns(cloudevent("1", traceparent=trace(3)), **attributes(trace(2))),
        {"traceparent": trace(1)},
    ),
}


@pytest.mark.parametrize("received", CARRIED.values(), ids=CARRIED)
def test_the_trace_is_found(received: ReceivedMessage) -> None:
    incoming = open_envelope(received)
    assert incoming.traceparent == trace(1)
    call = Call(incoming=incoming, queue="orders", attempt=1, deadline=0.0)
    assert Context("handler", call).traceparent == trace(1)


@pytest.mark.parametrize(
    "invalid",
    [
        "",
        "00-x",
        trace(1).upper().replace("0", "A"),
        trace(1) + "\n",
        trace(1) + "-00",
        "ff" + trace(1)[2:],
        trace(0),
        "00-" + "0" * 31 + "1-" + "0" * 16 + "-01",
        X_RAY,
        "\u0660\u0660" + trace(1)[2:],
    ],
)
def test_an_invalid_trace_is_ignored(invalid: str) -> None:
    for received in (
        message(job("1"), {"traceparent": invalid}),
        message(job("1"), trace_header=invalid),
        message(sns(job("1"), **attributes(invalid))),
        message(eventbridge({"traceparent": invalid})),
        message(cloudevent("1", traceparent=invalid)),
    ):
        assert open_envelope(received).traceparent is None


def test_binary_is_no_trace() -> None:
    received = ReceivedMessage(
        message_id="m",
        receipt_handle="r",
        receive_count=1,
        sent_at=0.0,
        body='{"id": "1", "type": "t", "payload": 1}',
        attributes={"traceparent": Attribute("Binary", trace(1).encode())},
    )
    assert open_envelope(received).traceparent is None


ANYTHING = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.sampled_from("ab"), children),
    max_leaves=5,
)


@given(ANYTHING)
def test_no_event_dies_of_its_trace(anything: object) -> None:
    for body in (
        sns(job("1"), **attributes(anything)),
        sns(job("1"), MessageAttributes=anything),
        sns(job("1"), MessageAttributes={"traceparent": anything}),
        eventbridge({"traceparent": anything}),
        cloudevent("1", traceparent=anything),
    ):
        assert open_envelope(message(body)).traceparent is None
