"""Dead letters read again, and what goes back to the queue."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outboxd.core.envelopes import open_envelope
from outboxd.core.letter_filters import Selection
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
from outboxd.core.redrive import (
    MAX_RECEIVES,
    REDRIVEN,
    UNREADABLE,
    Blamed,
    Comebacks,
    Entry,
    in_turns,
    read_letter,
    redriven,
)

EVENT_ID = "0194d0c0-0000-7000-8000-00000000000a"
BODY = f'{{"id":"{EVENT_ID}","type":"order.paid","payload":{{}}}}'
CAUSE = DeadLetter(DeadReason.REJECTED, "Reject: no such customer")

attributes = st.dictionaries(
    st.text("abcdefgh", min_size=1, max_size=6),
    st.builds(Attribute, st.just("String"), st.text(min_size=1, max_size=20)),
    max_size=MAX_ATTRIBUTES,
)


def a_message(
    body: str = BODY, attributes: dict[str, Attribute] | None = None, id: str = "M1"
) -> ReceivedMessage:
    return ReceivedMessage(
        message_id=id,
        receipt_handle="r",
        receive_count=1,
        sent_at=1_700_000_000.0,
        body=body,
        attributes=attributes or {},
        group_id="tenant-1",
        trace_header="Root=1",
    )


def buried(message: ReceivedMessage) -> ReceivedMessage:
    """The message as the dead-letter queue delivers it, under an id of its own."""
    letter = write_letter(
        "orders", message, open_envelope(message), CAUSE, [DeadHandler("ship", CAUSE, 3)], 1.7e9
    )
    return received(letter, "L1")


def received(letter: Letter, id: str = "M2") -> ReceivedMessage:
    return msgspec.structs.replace(
        a_message(letter.body, letter.attributes, id), group_id=letter.group_id
    )


def test_a_letter_says_what_was_written() -> None:
    entry = read_letter(buried(a_message()))

    assert entry.facts.reason == "rejected"
    assert entry.facts.handlers == (Blamed("ship", "rejected", CAUSE.error, 3),)
    assert (entry.facts.event_id, entry.facts.event_type) == (EVENT_ID, "order.paid")
    assert entry.ids == {"l1", "m1", EVENT_ID}


def test_a_letter_that_sqs_moved_by_itself_is_told_from_its_body() -> None:
    entry = read_letter(a_message())

    assert entry.facts.reason == MAX_RECEIVES
    assert (entry.facts.event_id, entry.facts.event_type) == (EVENT_ID, "order.paid")


def test_a_body_that_is_no_event_has_no_event_id() -> None:
    entry = read_letter(a_message("{"))

    assert (entry.facts.reason, entry.facts.event_id) == (MAX_RECEIVES, None)
    assert entry.ids == {"m1"}


@pytest.mark.parametrize("value", ["", "x", "[]", "{}", '{"reason":1}', b"\xff", "[" * 100_000])
def test_an_attribute_that_outboxd_did_not_write_is_unreadable(value: str | bytes) -> None:
    entry = read_letter(a_message(attributes={ATTRIBUTE: Attribute("String", value)}))

    assert entry.facts.reason == UNREADABLE


@given(attributes)
def test_a_redriven_message_is_the_original_and_a_count(original: dict[str, Attribute]) -> None:
    message = a_message(attributes=dict(list(original.items())[: MAX_ATTRIBUTES - 1]))

    letter = redriven(buried(message), "orders")

    assert letter.body == message.body
    assert letter.attributes == {**message.attributes, REDRIVEN: Attribute("Number", "1")}
    assert (letter.trace_header, letter.group_id) == ("Root=1", "tenant-1")


@given(attributes, st.sampled_from([BODY, "x" * MAX_MESSAGE_BYTES, "x" * (MAX_MESSAGE_BYTES - 20)]))
def test_a_redriven_message_keeps_the_limits_of_sqs(
    original: dict[str, Attribute], body: str
) -> None:
    message = a_message(body, original)
    before = letter_bytes(Letter(body, original))

    letter = redriven(message, "orders")

    assert len(letter.attributes) <= MAX_ATTRIBUTES
    assert letter_bytes(letter) <= max(before, MAX_MESSAGE_BYTES)
    assert original.items() <= letter.attributes.items()


def test_redrives_are_counted() -> None:
    message = a_message()
    for times in (1, 2, 3):
        letter = redriven(buried(message), "orders")
        assert letter.attributes[REDRIVEN].value == str(times)
        message = received(letter)


@pytest.mark.parametrize("value", ["x", "-1", "9" * 100, b"1"])
def test_a_count_that_is_none_starts_anew(value: str | bytes) -> None:
    message = a_message(attributes={REDRIVEN: Attribute("Number", value)})

    assert redriven(message, "orders").attributes[REDRIVEN].value == "1"


@pytest.mark.parametrize(
    ("ids", "reasons", "wanted"),
    [
        ([], [], True),
        (["l1"], [], True),
        (["M1"], [], True),
        ([EVENT_ID.upper()], [], True),
        (["other", "m1"], [], True),
        (["other"], [], False),
        ([], ["crash", "rejected"], True),
        ([], ["crash"], False),
        (["m1"], ["crash"], False),
    ],
)
def test_letters_are_chosen_by_any_id_and_by_reason(
    ids: list[str], reasons: list[str], wanted: bool
) -> None:
    assert Selection.of(ids, reasons).wants(read_letter(buried(a_message()))) is wanted


def test_a_letter_that_was_just_sent_is_known_when_it_is_back() -> None:
    comebacks = Comebacks()
    letter = buried(a_message())
    assert not comebacks.knows(read_letter(letter))
    sent = redriven(letter, "orders")
    comebacks.note(sent)

    assert comebacks.knows(read_letter(buried(received(sent))))
    assert comebacks.knows(read_letter(received(sent))), "SQS may have moved it"
    assert not comebacks.knows(read_letter(letter)), "a second letter of the same event"


def test_a_letter_without_room_for_the_count_is_known_by_its_body() -> None:
    comebacks = Comebacks()
    full = a_message(attributes={f"a{n}": Attribute("String", "x") for n in range(MAX_ATTRIBUTES)})
    sent = redriven(full, "orders")
    assert REDRIVEN not in sent.attributes
    comebacks.note(sent)

    assert comebacks.knows(read_letter(buried(received(sent))))


def test_a_fifo_queue_gets_the_group_and_an_id_of_the_letters_own() -> None:
    first = redriven(a_message(id="L1"), "orders.fifo")
    again = redriven(a_message(id="L1"), "orders.fifo")
    second_episode = redriven(a_message(id="L2"), "orders.fifo")

    assert first.group_id == "tenant-1"
    assert first.deduplication_id == again.deduplication_id == "redrive-L1"
    assert second_episode.deduplication_id == "redrive-L2"


def test_a_standard_queue_gets_the_group_and_no_id() -> None:
    letter = redriven(a_message(), "orders")

    assert (letter.group_id, letter.deduplication_id) == ("tenant-1", None)


def entries_of(groups: str) -> list[Entry]:
    return [
        read_letter(msgspec.structs.replace(a_message(id=f"L{n}"), group_id=group))
        for n, group in enumerate(groups)
    ]


def test_a_standard_queue_gets_all_letters_at_once() -> None:
    entries = entries_of("aab")

    assert in_turns(entries, "orders") == [entries]


@given(st.text("abc", max_size=10))
def test_a_fifo_queue_gets_one_letter_of_each_group_in_a_call_in_order(groups: str) -> None:
    entries = entries_of(groups)

    turns = in_turns(entries, "orders.fifo")

    assert len(turns) == max((groups.count(group) for group in groups), default=0)
    for turn in turns:
        assert len({entry.message.group_id for entry in turn}) == len(turn)
    for group in groups:
        mine = [entry for entry in entries if entry.message.group_id == group]
        assert [e for turn in turns for e in turn if e.message.group_id == group] == mine
