"""Faults of whole calls: what the client sees, and what the server has done."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ConnectionClosedError, ReadTimeoutError

from tests.localaws.staging import PATIENT_SECONDS, Stage, a_queue, impatient, open_stage, refused

EMPTY, SENT = (0, 0), (1, 0)


@pytest.mark.parametrize(
    ("fault", "settings", "code", "typed", "status", "blamed"),
    [
        ("throttle", {}, "ThrottlingException", None, 400, "Sender"),
        (
            "throttle",
            {"code": "RequestThrottled"},
            "RequestThrottled",
            "RequestThrottled",
            403,
            "Sender",
        ),
        ("server_error", {}, "InternalFailure", None, 500, "Receiver"),
        ("server_error", {"status": 503}, "ServiceUnavailable", None, 503, "Receiver"),
        ("error", {"code": "KmsAccessDenied"}, "KmsAccessDenied", "KmsAccessDenied", 400, "Sender"),
        ("error", {"code": "Odd", "status": 502}, "Odd", None, 502, "Receiver"),
        ("expired_token", {}, "ExpiredToken", None, 403, "Sender"),
        ("access_denied", {}, "AccessDenied", None, 403, "Sender"),
    ],
)
def test_a_refused_call_is_told_as_aws_tells_it_and_does_nothing(
    stage: Stage,
    fault: str,
    settings: dict[str, Any],
    code: str,
    typed: str | None,
    status: int,
    blamed: str,
) -> None:
    getattr(stage.faults, fault)("SendMessage", queue=stage.name, **settings)

    error = refused(stage.send, "x")

    assert error.response["Error"]["Code"] == code
    assert error.response["ResponseMetadata"]["HTTPStatusCode"] == status
    assert error.response["Error"]["Type"] == blamed  # type: ignore[typeddict-item]
    assert type(error).__name__ == (typed or "ClientError")
    assert stage.depth() == EMPTY
    stage.send("x")
    assert stage.depth() == SENT


def test_access_denied_names_the_action_that_a_policy_must_allow(stage: Stage) -> None:
    stage.faults.access_denied("SendMessageBatch", queue=stage.name)

    error = refused(stage.send_batch, "x")

    assert "is not authorized to perform: sqs:sendmessage on resource: arn:aws:sqs:us-" in str(
        error
    )
    assert stage.name in str(error)


@pytest.mark.parametrize("status", [500, 503])
def test_a_server_error_after_the_work_leaves_it_done(stage: Stage, status: Any) -> None:
    stage.faults.server_error("SendMessage", status=status, when="after", queue=stage.name)

    assert refused(stage.send, "x").response["ResponseMetadata"]["HTTPStatusCode"] == status

    assert stage.depth() == SENT


@pytest.mark.parametrize(("when", "then"), [("before", EMPTY), ("after", SENT)])
def test_a_reset_does_not_tell_on_which_side_of_the_work_it_was(
    stage: Stage, when: Any, then: tuple[int, int]
) -> None:
    stage.faults.reset("SendMessage", when=when, queue=stage.name)

    with pytest.raises(ConnectionClosedError):
        stage.send("x")

    assert stage.depth() == then


def test_a_reset_comes_after_the_work_unless_told_otherwise(stage: Stage) -> None:
    stage.faults.reset("SendMessage", queue=stage.name)

    with pytest.raises(ConnectionClosedError):
        stage.send("x")

    assert stage.depth() == SENT


@pytest.mark.parametrize(("when", "then"), [("before", EMPTY), ("after", SENT)])
def test_a_hanging_call_is_answered_by_nothing_but_the_client_s_patience(
    stage: Stage, when: Any, then: tuple[int, int]
) -> None:
    stage.faults.hang("SendMessage", when=when, queue=stage.name)

    with impatient(stage) as client, pytest.raises(ReadTimeoutError):
        client.send("x")

    assert stage.depth() == then


@pytest.mark.parametrize(("when", "meanwhile"), [("before", EMPTY), ("after", SENT)])
def test_a_hanging_call_is_cut_off_when_its_fault_is_cleared(
    stage: Stage, when: Any, meanwhile: tuple[int, int]
) -> None:
    hang = stage.faults.hang("SendMessage", when=when, queue=stage.name)
    ended: list[Exception] = []

    def send() -> None:
        try:
            stage.send("x")
        except Exception as error:
            ended.append(error)

    thread = threading.Thread(target=send)
    thread.start()
    hang.wait_until_fired()
    assert stage.depth() == meanwhile
    hang.clear()
    thread.join(PATIENT_SECONDS / 2)

    assert [type(error) for error in ended] == [ConnectionClosedError]
    assert stage.depth() == meanwhile


@pytest.mark.parametrize(("when", "meanwhile"), [("before", EMPTY), ("after", SENT)])
def test_a_slow_call_is_done_on_the_side_of_the_delay_that_was_asked_for(
    stage: Stage, when: Any, meanwhile: tuple[int, int]
) -> None:
    slow = stage.faults.slow("SendMessage", seconds=60, when=when, queue=stage.name)
    thread = threading.Thread(target=stage.send, args=("x",))
    thread.start()
    slow.wait_until_fired()
    assert stage.depth() == meanwhile

    slow.clear()  # which lets it go on
    thread.join(PATIENT_SECONDS / 2)

    assert stage.depth() == SENT


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_slow_call_takes_its_time_and_succeeds(stage: Stage, when: Any) -> None:
    stage.faults.slow("SendMessage", seconds=0.1, when=when, queue=stage.name)
    started = time.monotonic()

    stage.send("x")

    assert time.monotonic() - started >= 0.1
    assert stage.depth() == SENT


def test_a_slow_call_is_done_though_its_client_has_given_up(stage: Stage) -> None:
    slow = stage.faults.slow("SendMessage", seconds=60, queue=stage.name)

    with impatient(stage) as client, pytest.raises(ReadTimeoutError):
        client.send("late")
    stage.send("meanwhile")
    slow.clear()

    assert stage.bodies() == ["meanwhile", "late"]


def test_a_slow_receive_takes_nothing_for_a_client_that_has_given_up(stage: Stage) -> None:
    stage.send("x")
    slow = stage.faults.slow("ReceiveMessage", seconds=60, queue=stage.name)

    with impatient(stage) as client, pytest.raises(ReadTimeoutError):
        client.receive()
    slow.clear()

    assert stage.depth() == SENT


def test_a_server_that_ends_leaves_no_late_work_behind() -> None:
    with open_stage() as (aws, sqs):
        stage = a_queue(aws, sqs)
        stage.faults.slow("SendMessage", seconds=3600)
        with impatient(stage) as client, pytest.raises(ReadTimeoutError):
            client.send("x")
        stage.faults.hang("SendMessage")
        with impatient(stage) as client, pytest.raises(ReadTimeoutError):
            client.send("x")


def test_a_receive_whose_answer_is_lost_hides_its_messages(stage: Stage) -> None:
    stage.send("x")
    stage.faults.reset("ReceiveMessage", queue=stage.name)

    with pytest.raises(ConnectionClosedError):
        stage.receive()

    assert stage.depth() == (0, 1)


@pytest.mark.parametrize(
    ("operation", "act", "after"),
    [
        ("DeleteMessage", lambda stage, message: stage.delete(message), (0, 1)),
        ("ChangeMessageVisibility", lambda stage, message: stage.hide(message, 0), (0, 1)),
        (
            "PurgeQueue",
            lambda stage, message: stage.sqs.purge_queue(QueueUrl=stage.url),
            (0, 1),
        ),
        ("SendMessage", lambda stage, message: stage.send("y"), (0, 1)),
        (
            "DeleteQueue",
            lambda stage, message: stage.sqs.delete_queue(QueueUrl=stage.url),
            (0, 1),
        ),
    ],
)
def test_a_swallowed_call_succeeds_and_does_nothing(
    stage: Stage,
    operation: str,
    act: Callable[[Stage, Any], object],
    after: tuple[int, int],
) -> None:
    stage.send("x")
    (message,) = stage.receive()
    swallow = stage.faults.swallow(operation, queue=stage.name)

    act(stage, message)

    assert swallow.fired == 1
    assert stage.depth() == after


@pytest.mark.parametrize("fifo", [False, True])
def test_a_swallowed_send_is_answered_like_a_real_one(
    stage: Stage, fifo_stage: Stage, fifo: bool
) -> None:
    queue = fifo_stage if fifo else stage
    values: dict[str, Any] = {
        "QueueUrl": queue.url,
        "MessageBody": "grüß dich",
        "MessageAttributes": {"kind": {"DataType": "String", "StringValue": "greeting"}},
        **({"MessageGroupId": "g"} if fifo else {}),
    }
    real: Any = queue.sqs.send_message(**values)
    queue.faults.swallow("SendMessage", queue=queue.name)

    pretended: Any = queue.sqs.send_message(**values | {"MessageBody": "grüß dich"})

    assert set(pretended) == set(real)
    for key in ("MD5OfMessageBody", "MD5OfMessageAttributes"):
        assert pretended[key] == real[key]
    assert pretended["MessageId"] != real["MessageId"]
    assert queue.depth() == SENT


def test_a_swallowed_call_that_cannot_be_read_is_still_refused(stage: Stage) -> None:
    stage.faults.swallow("SendMessage")

    error = refused(
        lambda: stage.sqs.send_message(
            QueueUrl=stage.url,
            MessageBody="x",
            DelaySeconds=2**40,
        )
    )

    assert error.response["Error"]["Code"] == "SerializationException"


@pytest.mark.parametrize(
    ("operation", "code", "expected"),
    [
        ("DeleteMessage", "ReceiptHandleIsInvalid", "ReceiptHandleIsInvalid"),
        ("ChangeMessageVisibility", "ReceiptHandleIsInvalid", "ReceiptHandleIsInvalid"),
        ("ChangeMessageVisibility", "MessageNotInflight", "MessageNotInflight"),
    ],
)
def test_a_stale_receipt_is_refused_by_its_type(
    stage: Stage, operation: str, code: Any, expected: str
) -> None:
    stage.send("x")
    (message,) = stage.receive()
    stage.faults.stale_receipt(operation, code=code, queue=stage.name)
    act = stage.delete if operation == "DeleteMessage" else lambda each: stage.hide(each, 0)

    error = refused(act, message)

    assert type(error).__name__ == expected
    assert stage.depth() == (0, 1)
    act(message)
    assert stage.depth()[1] == 0


def test_a_receipt_that_is_not_in_flight_concerns_no_delete(stage: Stage) -> None:
    stage.send("x")
    (message,) = stage.receive()
    stale = stage.faults.stale_receipt(code="MessageNotInflight", queue=stage.name)

    stage.delete(message)

    assert (stale.fired, stage.depth()) == (0, EMPTY)
