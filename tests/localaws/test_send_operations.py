"""What may be sent: sizes in bytes, characters, attributes, batches, digests."""

from collections.abc import Callable
from typing import Any

import pytest

from outboxd.localaws.errors import AwsError
from outboxd.localaws.sqs import requests, responses
from outboxd.localaws.sqs.digests import attributes_md5
from outboxd.localaws.sqs.message import AttributeValue
from outboxd.localaws.sqs.operations import send, settle
from outboxd.localaws.sqs.queue import Queue
from tests.localaws.support import Engine

MIB = 1_048_576


def text(value: str, data_type: str = "String") -> AttributeValue:
    return AttributeValue(data_type, value)


def refusal(act: Callable[[], object]) -> AwsError:
    with pytest.raises(AwsError) as caught:
        act()
    return caught.value


def entry(entry_id: str, body: str = "x", **members: Any) -> requests.SendEntry:
    return requests.SendEntry(id=entry_id, message_body=body, **members)


def send_batch(engine: Engine, queue: Queue, *entries: requests.SendEntry) -> responses.BatchResult:
    request = requests.SendMessageBatch(queue.identity.name, list(entries))
    return send.send_message_batch(engine.call, request)


def failures(result: responses.BatchResult) -> dict[str, str]:
    assert all(failed.sender_fault for failed in result.failed)
    return {failed.id: failed.code for failed in result.failed}


@pytest.mark.parametrize("body", ["x" * MIB, "é" * (MIB // 2), "€" * (MIB // 3), "😀" * (MIB // 4)])
def test_a_message_may_have_a_mebibyte_of_utf8_and_not_a_byte_more(
    engine: Engine, body: str
) -> None:
    queue = engine.queue()
    engine.send(queue, body)

    error = refusal(lambda: engine.send(queue, body + "xx"))

    assert (error.code, "shorter than 1048576 bytes" in error.message) == (
        "InvalidParameterValue",
        True,
    )


def test_names_types_and_values_of_attributes_count_and_the_trace_header_does_not(
    engine: Engine,
) -> None:
    queue = engine.queue(MaximumMessageSize=1024)
    attributes = {
        "é": text("v" * 10),
        "bin": AttributeValue("Binary", None, b"\xff" * 7),
    }
    counted = (2 + len("String") + 10) + (3 + len("Binary") + 7)
    trace = {"AWSTraceHeader": text("Root=1-5759e988-bd862e3fe1be46a994272793")}

    engine.send(
        queue,
        "x" * (1024 - counted),
        message_attributes=attributes,
        message_system_attributes=trace,
    )
    error = refusal(
        lambda: engine.send(queue, "x" * (1025 - counted), message_attributes=attributes)
    )
    assert "shorter than 1024 bytes" in error.message


@pytest.mark.parametrize("good", ["\t\n\r", "\u0020", "\ud7ff", "\ue000", "\ufffd", "\U0010ffff"])
def test_allowed_characters(engine: Engine, good: str) -> None:
    queue = engine.queue()
    engine.send(queue, good)

    assert engine.bodies(queue) == [good]


@pytest.mark.parametrize("bad", list(map(chr, (0x0, 0xB, 0x1F, 0xD800, 0xDFFF, 0xFFFE, 0xFFFF))))
def test_forbidden_characters(engine: Engine, bad: str) -> None:
    queue = engine.queue()

    assert refusal(lambda: engine.send(queue, f"a{bad}b")).shape == "InvalidMessageContents"
    in_attribute = {"k": text(f"a{bad}")}
    error = refusal(lambda: engine.send(queue, message_attributes=in_attribute))
    assert error.shape == "InvalidMessageContents"
    assert engine.depth(queue) == (0, 0, 0)


def test_an_empty_body_is_a_missing_one(engine: Engine) -> None:
    queue = engine.queue()

    assert refusal(lambda: engine.send(queue, "")).code == "MissingParameter"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("k" * 256, text("v")),
        ("a.b-c_D9", text("v")),
        ("n", text("7", "Number")),
        ("n", text("-1.5e10", "Number.float")),
        ("s", text("v", "String.json")),
        ("b", AttributeValue("Binary.png", None, b"\x00")),
    ],
)
def test_good_attributes(engine: Engine, name: str, value: AttributeValue) -> None:
    queue = engine.queue()
    engine.send(queue, message_attributes={name: value})

    assert engine.receive_one(queue).message.attributes == {name: value}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("", text("v")),
        ("k" * 257, text("v")),
        (".k", text("v")),
        ("k.", text("v")),
        ("a..b", text("v")),
        ("a b", text("v")),
        ("aWs.k", text("v")),
        ("AMAZON.k", text("v")),
        ("k", text("v", "")),
        ("k", text("v", "string")),
        ("k", text("v", "String." + "x" * 256)),
        ("k", text("", "String")),
        ("k", AttributeValue("String")),
        ("k", AttributeValue("String", None, b"v")),
        ("k", AttributeValue("Binary", "v")),
        ("k", AttributeValue("Binary", None, b"")),
        ("k", text("seven", "Number")),
    ],
)
def test_bad_attributes(engine: Engine, name: str, value: AttributeValue) -> None:
    queue = engine.queue()

    error = refusal(lambda: engine.send(queue, message_attributes={name: value}))

    assert error.code == "InvalidParameterValue"


def test_ten_attributes_and_no_more(engine: Engine) -> None:
    queue = engine.queue()
    ten = {f"k{n}": text("v") for n in range(10)}
    engine.send(queue, message_attributes=ten)

    error = refusal(lambda: engine.send(queue, message_attributes=ten | {"k10": text("v")}))

    assert "[11] exceeds the allowed maximum [10]" in error.message


@pytest.mark.parametrize(
    "system", [{"Nonsense": text("v")}, {"AWSTraceHeader": text("7", "Number")}]
)
def test_the_only_system_attribute_is_a_trace_header(
    engine: Engine, system: dict[str, AttributeValue]
) -> None:
    queue = engine.queue()

    error = refusal(lambda: engine.send(queue, message_system_attributes=system))

    assert error.code == "InvalidParameterValue"


@pytest.mark.parametrize("delay", [-1, 901])
def test_a_delay_is_at_most_fifteen_minutes(engine: Engine, delay: int) -> None:
    queue = engine.queue()

    assert "DelaySeconds" in refusal(lambda: engine.send(queue, delay_seconds=delay)).message


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({}, "MissingParameter"),
        ({"message_group_id": "g"}, "InvalidParameterValue"),
        ({"message_deduplication_id": "d"}, "MissingParameter"),
        ({"message_group_id": "", "message_deduplication_id": "d"}, "InvalidParameterValue"),
        ({"message_group_id": "a b", "message_deduplication_id": "d"}, "InvalidParameterValue"),
        ({"message_group_id": "g" * 129, "message_deduplication_id": "d"}, "InvalidParameterValue"),
        ({"message_group_id": "g", "message_deduplication_id": ""}, "InvalidParameterValue"),
        (
            {"message_group_id": "g", "message_deduplication_id": "d", "delay_seconds": 1},
            "InvalidParameterValue",
        ),
    ],
)
def test_what_a_fifo_queue_refuses(engine: Engine, members: dict[str, Any], code: str) -> None:
    queue = engine.queue("orders.fifo", ContentBasedDeduplication="false")

    assert refusal(lambda: engine.send(queue, **members)).code == code


def test_a_fifo_queue_has_its_own_delay_only(engine: Engine) -> None:
    queue = engine.queue("orders.fifo", DelaySeconds=10)
    engine.send(queue, "a1", message_group_id="a", delay_seconds=0)

    assert engine.depth(queue) == (0, 0, 1)
    engine.wait(10)
    assert engine.bodies(queue) == ["a1"]


def test_a_standard_queue_has_no_deduplication(engine: Engine) -> None:
    queue = engine.queue()

    error = refusal(lambda: engine.send(queue, message_deduplication_id="d"))

    assert "not valid for this queue type" in error.message


class TestBatch:
    def test_entries_fail_one_by_one(self, engine: Engine) -> None:
        queue = engine.queue(MaximumMessageSize=1024)

        result = send_batch(
            engine,
            queue,
            entry("good"),
            entry("character", "\x00"),
            entry("size", "x" * 1025),
            entry("delay", delay_seconds=901),
            entry("attribute", message_attributes={"k": text("")}),
            entry("empty", ""),
        )

        assert [done.id for done in result.successful] == ["good"]
        assert failures(result) == {
            "character": "InvalidMessageContents",
            "size": "InvalidParameterValue",
            "delay": "InvalidParameterValue",
            "attribute": "InvalidParameterValue",
            "empty": "MissingParameter",
        }
        assert engine.depth(queue) == (1, 0, 0)

    @pytest.mark.parametrize(
        ("ids", "shape"),
        [
            ([], "EmptyBatchRequest"),
            ([str(n) for n in range(11)], "TooManyEntriesInBatchRequest"),
            (["a", "b", "a"], "BatchEntryIdsNotDistinct"),
            (["a b"], "InvalidBatchEntryId"),
            ([""], "InvalidBatchEntryId"),
            (["x" * 81], "InvalidBatchEntryId"),
            (["é"], "InvalidBatchEntryId"),
        ],
    )
    def test_batches_of_all_three_kinds_are_refused_as_a_whole(
        self, engine: Engine, ids: list[str], shape: str
    ) -> None:
        queue = engine.queue()
        engine.send(queue)
        handle = engine.receive_one(queue).handle
        deletes = [requests.DeleteEntry(i, handle) for i in ids]
        changes = [requests.VisibilityEntry(i, handle, 0) for i in ids]

        acts: list[Callable[[], object]] = [
            lambda: send_batch(engine, queue, *(entry(i) for i in ids)),
            lambda: settle.delete_message_batch(
                engine.call, requests.DeleteMessageBatch("orders", deletes)
            ),
            lambda: settle.change_message_visibility_batch(
                engine.call, requests.ChangeMessageVisibilityBatch("orders", changes)
            ),
        ]
        for act in acts:
            error = refusal(act)
            assert (error.shape, error.code) == (shape, f"AWS.SimpleQueueService.{shape}")
        assert engine.depth(queue) == (0, 1, 0)

    def test_all_entries_together_have_a_mebibyte_of_bodies_and_attributes(
        self, engine: Engine
    ) -> None:
        queue = engine.queue()
        attribute = {"k": text("v")}
        room = MIB - len("kStringv")
        half, rest = "x" * (MIB // 2), "x" * (room - MIB // 2)

        fits = send_batch(
            engine, queue, entry("a", half), entry("b", rest, message_attributes=attribute)
        )
        assert len(fits.successful) == 2

        error = refusal(
            lambda: send_batch(
                engine,
                queue,
                entry("a", half),
                entry("b", rest + "x", message_attributes=attribute),
            )
        )
        assert error.shape == "BatchRequestTooLong"
        assert "1048577 bytes" in error.message
        assert engine.depth(queue) == (2, 0, 0)

    def test_a_fifo_batch_keeps_its_order(self, engine: Engine) -> None:
        queue = engine.queue("orders.fifo")

        result = send_batch(
            engine,
            queue,
            *(entry(str(n), f"a{n}", message_group_id="a") for n in range(3)),
        )

        assert engine.bodies(queue) == ["a0", "a1", "a2"]
        numbers = [
            e.sequence_number for e in result.successful if isinstance(e, responses.SentEntry)
        ]
        assert numbers == sorted(numbers, key=str)

    def test_a_fifo_batch_without_its_ids_is_refused_as_a_whole(self, engine: Engine) -> None:
        queue = engine.queue("orders.fifo", ContentBasedDeduplication="false")
        good = entry("a", message_group_id="g", message_deduplication_id="d")

        for bad in (entry("b", message_group_id="g"), entry("b", message_deduplication_id="e")):
            error = refusal(lambda bad=bad: send_batch(engine, queue, good, bad))  # type: ignore[misc]
            assert error.code == "InvalidParameterValue"
        assert engine.depth(queue) == (0, 0, 0)


class TestSettlingInBatches:
    def test_a_bad_entry_does_not_keep_the_good_ones_from_being_deleted(
        self, engine: Engine
    ) -> None:
        queue = engine.queue()
        engine.send(queue)
        good = requests.DeleteEntry("good", engine.receive_one(queue).handle)
        request = requests.DeleteMessageBatch(
            "orders",
            [requests.DeleteEntry("bad", "garbage"), requests.DeleteEntry("empty", ""), good],
        )

        result = settle.delete_message_batch(engine.call, request)

        assert [done.id for done in result.successful] == ["good"]
        assert failures(result) == {"bad": "ReceiptHandleIsInvalid", "empty": "MissingParameter"}
        assert engine.depth(queue) == (0, 0, 0)

    def test_each_late_or_impossible_extension_fails_by_itself(self, engine: Engine) -> None:
        queue = engine.queue(VisibilityTimeout=30)
        engine.send_all(queue, "late", "live")
        late = engine.receive_one(queue, visibility=1).handle
        live = engine.receive_one(queue).handle
        engine.wait(1)
        request = requests.ChangeMessageVisibilityBatch(
            "orders",
            [
                requests.VisibilityEntry("late", late, 10),
                requests.VisibilityEntry("long", live, 43_201),
                requests.VisibilityEntry("unsaid", live, None),
                requests.VisibilityEntry("live", live, 10),
            ],
        )

        result = settle.change_message_visibility_batch(engine.call, request)

        assert [done.id for done in result.successful] == ["live"]
        assert failures(result) == {
            "late": "AWS.SimpleQueueService.MessageNotInflight",
            "long": "InvalidParameterValue",
            "unsaid": "MissingParameter",
        }


def test_digests_of_attributes_are_those_of_aws() -> None:
    """The two digests were recorded from SQS itself."""
    assert attributes_md5({}) is None
    assert (
        attributes_md5({"Help.Me": text("Me"), "Hello": text("There"), "General": text("Kenobi")})
        == "4c360f3fdafd970e05fae2f149d997f5"
    )
    traceparent = b"traceparent\x1e00-774062d6c37081a5a0b9b5b88e30627c-2d2482211f6489da-01"
    assert (
        attributes_md5({"attr1": AttributeValue("Binary", None, traceparent)})
        == "8cbe4db156db8a94db8b801b7addb984"
    )
