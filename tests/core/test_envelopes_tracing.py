"""A trace is taken from wherever the road carried it, and no event ever dies of one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outboxd.core.envelopes import open_envelope
from outboxd.core.envelopes.tracing import first_traceparent, traceparent_of_x_ray
from outboxd.core.messages import Attribute, ReceivedMessage
from outboxd.ports.handling import Call, Context
from tests.core.envelope_roads import cloudevent, event, eventbridge, job, message, sns


def trace(number: int) -> str:
    return f"00-{number:032x}-{number:016x}-01"


def attributes(value: object) -> dict[str, Any]:
    return {"MessageAttributes": {"traceparent": {"Type": "String", "Value": value}}}


def x_ray(number: int) -> str:
    return f"Root=1-00000000-{number:024x};Parent={number:016x};Sampled=1"


ROOT = "1-5759e988-bd862e3fe1be46a994272793"
PARENT = "53995c3f42cd8ad8"
X_RAY = f"Root={ROOT};Parent={PARENT};Sampled=1"
CONVERTED = "00-5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8"
CARRIED = {
    "SQS attribute": message(job("1"), {"traceparent": trace(1)}),
    "AWSTraceHeader": message(job("1"), trace_header=x_ray(1)),
    "AWSTraceHeader beside an envelope without one": message(sns(job("1")), trace_header=x_ray(1)),
    "SNS attribute": message(sns(job("1"), **attributes(trace(1)))),
    "detail with an event": message(eventbridge(event("1") | {"traceparent": trace(1)})),
    "detail as payload": message(eventbridge({"traceparent": trace(1)})),
    "CloudEvents extension": message(cloudevent("1", traceparent=trace(1))),
    "CloudEvents in SNS over EventBridge": message(
        sns(eventbridge(cloudevent("1", traceparent=trace(1))))
    ),
    "invalid outside, valid inside": message(
        sns(job("1"), **attributes(trace(1))), {"traceparent": "00-x"}, trace_header=x_ray(2)
    ),
    "several: the last hop is nearest": message(
        sns(cloudevent("1", traceparent=trace(3)), **attributes(trace(2))),
        {"traceparent": trace(1)},
        trace_header=x_ray(4),
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
        X_RAY.removesuffix("1") + "2",
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


@pytest.mark.parametrize(
    ("header", "traceparent"),
    [
        (X_RAY, f"{CONVERTED}-01"),
        (f"Root={ROOT};Parent={PARENT};Sampled=0", f"{CONVERTED}-00"),
        (f"Root={ROOT};Parent={PARENT};Sampled=?", f"{CONVERTED}-00"),
        (f"Root={ROOT};Parent={PARENT}", f"{CONVERTED}-00"),
        (
            f"Sampled=1; Lineage=a87bd80c:1|68fd508a:5; Parent={PARENT}; Root={ROOT}",
            f"{CONVERTED}-01",
        ),
        (f"Root={ROOT};Sampled=1", None),
        (f"Root={ROOT};Parent=;Sampled=1", None),
        (f"Parent={PARENT};Sampled=1", None),
        (f"Root={ROOT};Parent={'0' * 16};Sampled=1", None),
        (f"Root=1-{'0' * 8}-{'0' * 24};Parent={PARENT};Sampled=1", None),
        (f"Root=2{ROOT[1:]};Parent={PARENT};Sampled=1", None),
        (f"Root={ROOT};Parent={PARENT};Sampled=yes", None),
        (f"Root={ROOT};Root={ROOT};Parent={PARENT}", None),
        (f"Root={ROOT.upper()};Parent={PARENT}", None),
        (f"Root={ROOT};Parent={PARENT}\n-", None),
        ("", None),
        (";;", None),
        (f"{CONVERTED}-01", None),
    ],
)
def test_a_trace_header_of_x_ray_is_converted(header: str, traceparent: str | None) -> None:
    received = message(job("1"), trace_header=header)
    assert open_envelope(received).traceparent == traceparent
    assert received.trace_header == header, "what a dead letter passes on is not touched"


HEX = "0123456789abcdef"


@given(
    st.text(HEX, min_size=8, max_size=8),
    st.text(HEX, min_size=24, max_size=24),
    st.text(HEX, min_size=16, max_size=16),
    st.sampled_from(["0", "1", "?", None]),
    st.permutations(range(4)),
)
def test_every_valid_x_ray_header_keeps_its_ids(
    start: str, rest: str, parent: str, sampled: str | None, order: list[int]
) -> None:
    fields = [
        f"Root=1-{start}-{rest}",
        f"Parent={parent}",
        "Self=1-67891234-12456789abcdef012345678",
    ]
    fields.append("Lineage=1" if sampled is None else f"Sampled={sampled}")
    converted = traceparent_of_x_ray(";".join(fields[position] for position in order))
    expected = f"00-{start}{rest}-{parent}-{'01' if sampled == '1' else '00'}"
    assert converted == first_traceparent(expected)


@given(st.text() | st.text("Root=1-;Parent0123456789abcdefSampled?"))
def test_a_malformed_x_ray_header_is_no_trace(header: str) -> None:
    converted = traceparent_of_x_ray(header)
    assert converted is None or first_traceparent(converted) == converted


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
