"""Dead letters: the message unchanged, its reason, and the limits of SQS."""

import json

from hypothesis import given
from hypothesis import strategies as st

from outboxd.core.letters import (
    ATTRIBUTE,
    MAX_ATTRIBUTES,
    MAX_MESSAGE_BYTES,
    Letter,
    letter_bytes,
    write_letter,
)
from outboxd.core.message_plan import DeadHandler
from outboxd.core.messages import Attribute, ReceivedMessage
from outboxd.core.outcomes import DeadLetter, DeadReason

CAUSE = DeadLetter(DeadReason.REJECTED, "Reject: no such customer")
DEAD = DeadHandler("mailer", CAUSE, 3)


def a_message(body: str = "{}", **attributes: Attribute) -> ReceivedMessage:
    return ReceivedMessage(
        message_id="m1",
        receipt_handle="r",
        receive_count=4,
        sent_at=1_700_000_000.25,
        body=body,
        attributes=attributes,
        trace_header="Root=1",
    )


def a_letter(message: ReceivedMessage, cause: DeadLetter = CAUSE) -> Letter:
    return write_letter("orders", message, None, cause, [DEAD], 1_700_000_060.0)


def told(letter: Letter) -> dict[str, object]:
    facts: dict[str, object] = json.loads(letter.attributes[ATTRIBUTE].value)
    return facts


def test_a_letter_says_why_and_where_from() -> None:
    letter = a_letter(a_message("{", event_type=Attribute("String", "order.paid")))
    assert letter.body == "{"
    assert letter.trace_header == "Root=1"
    assert letter.attributes["event_type"] == Attribute("String", "order.paid")
    assert told(letter) == {
        "reason": "rejected",
        "error": "Reject: no such customer",
        "handlers": [
            {
                "name": "mailer",
                "reason": "rejected",
                "error": "Reject: no such customer",
                "attempts": 3,
            }
        ],
        "source_queue": "orders",
        "message_id": "m1",
        "receive_count": 4,
        "event_id": None,
        "event_type": None,
        "sent_at": "2023-11-14T22:13:20.250+00:00",
        "dead_lettered_at": "2023-11-14T22:14:20.000+00:00",
    }


def test_ten_attributes_make_room_for_the_reason_and_say_so() -> None:
    attributes = {f"a{n}": Attribute("String", "x" * n) for n in range(1, 9)}
    ours = {
        "event_type": Attribute("String", "order.paid"),
        "traceparent": Attribute("String", "0" * 55),
    }
    letter = a_letter(a_message("{}", **attributes, **ours))
    assert len(letter.attributes) == MAX_ATTRIBUTES
    assert told(letter)["dropped_attributes"] == ["a8"]
    assert {"event_type", "traceparent"} <= set(letter.attributes)


def test_a_redriven_letter_gets_a_new_reason() -> None:
    letter = a_letter(a_message("{}", outboxd=Attribute("String", '{"reason": "old"}')))
    assert told(letter)["reason"] == "rejected"
    assert "dropped_attributes" not in told(letter)


def test_a_full_message_loses_its_reason_rather_than_its_body() -> None:
    body = "x" * MAX_MESSAGE_BYTES
    assert a_letter(a_message(body)) == Letter(body, {}, "Root=1")


def test_a_nearly_full_message_keeps_the_reason_and_shortens_the_error() -> None:
    letter = a_letter(a_message("x" * (MAX_MESSAGE_BYTES - 700)), DeadLetter(error="e" * 1000))
    assert letter_bytes(letter) <= MAX_MESSAGE_BYTES
    assert 0 < len(str(told(letter)["error"])) < 1000


VALUES = st.builds(Attribute, st.sampled_from(["String", "Number"]), st.text(max_size=2000)) | (
    st.builds(Attribute, st.just("Binary"), st.binary(max_size=2000))
)


@given(
    st.dictionaries(st.text("abcdefgh_.", min_size=1, max_size=8), VALUES, max_size=10),
    st.integers(0, 5000),
    st.text(st.characters(), max_size=2000),
)
def test_every_letter_keeps_its_body_and_fits(
    attributes: dict[str, Attribute], below_the_limit: int, error: str
) -> None:
    own = letter_bytes(Letter("", attributes))
    body = "x" * max(1, MAX_MESSAGE_BYTES - own - below_the_limit)
    letter = a_letter(a_message(body, **attributes), DeadLetter(DeadReason.TIMEOUT, error))
    assert letter.body == body
    assert len(letter.attributes) <= MAX_ATTRIBUTES
    assert letter_bytes(letter) <= MAX_MESSAGE_BYTES
    for name, attribute in letter.attributes.items():
        assert name == ATTRIBUTE or attributes[name] == attribute
    if ATTRIBUTE in letter.attributes:
        text = letter.attributes[ATTRIBUTE].value
        assert isinstance(text, str)
        assert text.isascii()
        assert text.isprintable()
        dropped = set(attributes) - set(letter.attributes)
        assert set(json.loads(text).get("dropped_attributes", [])) == dropped
