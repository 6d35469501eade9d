"""The script: which calls a fault is for, how often it hits, and what is refused."""

import json
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from botocore.exceptions import ClientError

from outboxd.localaws.script.decoding import Unscriptable, decoded
from outboxd.localaws.script.kinds import KINDS, Throttle
from outboxd.localaws.script.rule import Address
from outboxd.localaws.sqs.operations.table import OPERATIONS
from outboxd.testing import FaultRefused
from tests.localaws.staging import Stage, a_queue


def hits(stage: Stage, calls: int) -> str:
    """One letter for each send: x for a hit, a dot for none."""
    letters = []
    for _ in range(calls):
        try:
            stage.send("x")
            letters.append(".")
        except ClientError:
            letters.append("x")
    return "".join(letters)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({}, "x....."),
        ({"count": 2}, "xx...."),
        ({"count": None}, "xxxxxx"),
        ({"skip": 2}, "..x..."),
        ({"skip": 1, "count": 3}, ".xxx.."),
    ],
)
def test_it_hits_so_many_calls_after_so_many(
    stage: Stage, where: dict[str, Any], expected: str
) -> None:
    fault = stage.faults.throttle("SendMessage", queue=stage.name, **where)

    assert hits(stage, 6) == expected
    assert fault.fired == expected.count("x")


def test_the_same_seed_hits_the_same_calls(stage: Stage) -> None:
    def story(seed: int) -> str:
        with stage.faults.throttle(
            "SendMessage", queue=stage.name, count=None, probability=0.5, seed=seed
        ):
            return hits(stage, 30)

    assert story(5) == story(5)
    assert story(5) != story(6)
    assert 0 < story(5).count("x") < 30


def test_a_seed_that_was_not_given_is_told(stage: Stage) -> None:
    def fault(**seed: Any) -> Any:
        return stage.faults.throttle(queue=stage.name, count=None, probability=0.5, **seed)

    with fault() as first:
        story = hits(stage, 30)
    with fault(seed=first.seed):
        assert hits(stage, 30) == story


def test_it_is_over_when_its_time_is(stage: Stage) -> None:
    stage.faults.throttle("SendMessage", queue=stage.name, count=None, duration_seconds=600)
    assert hits(stage, 2) == "xx"

    stage.aws.advance(599)
    assert hits(stage, 1) == "x"
    stage.aws.advance(1)

    assert hits(stage, 2) == ".."
    (fault,) = stage.faults.scripted()
    assert (fault["fired"], fault["over"]) == (3, True)


def test_it_is_addressed_by_a_glob_of_queues(stage: Stage) -> None:
    other = a_queue(stage.aws, stage.sqs)
    stage.faults.throttle("SendMessage", queue=f"{stage.name[:-1]}[{stage.name[-1]}]", count=None)

    assert (hits(stage, 1), hits(other, 1)) == ("x", ".")


def test_it_is_addressed_by_operations(stage: Stage) -> None:
    stage.faults.throttle(["SendMessage", "DeleteMessage"], queue=stage.name, count=None)

    assert hits(stage, 1) == "x"
    assert stage.receive() == []
    with pytest.raises(ClientError):
        stage.delete({"ReceiptHandle": "any"})


def test_without_a_queue_it_also_hits_what_is_about_none(stage: Stage) -> None:
    stage.faults.throttle("ListQueues", queue=stage.name)
    stage.sqs.list_queues()

    stage.faults.throttle("ListQueues")

    with pytest.raises(ClientError):
        stage.sqs.list_queues()


def test_it_is_addressed_by_a_text_in_the_call(stage: Stage) -> None:
    stage.faults.reset("SendMessageBatch", containing="o-17", queue=stage.name)
    stage.send_batch("o-15", "o-16")

    with pytest.raises(Exception, match="Connection was closed"):
        stage.send_batch("o-17", "o-18")

    assert stage.depth() == (4, 0)


def test_the_oldest_fault_goes_first_and_the_next_one_waits(stage: Stage) -> None:
    first = stage.faults.throttle("SendMessage", queue=stage.name)
    second = stage.faults.access_denied("SendMessage", queue=stage.name)
    codes = []
    for _ in range(2):
        with pytest.raises(ClientError) as caught:
            stage.send("x")
        codes.append(caught.value.response["Error"]["Code"])

    assert codes == ["ThrottlingException", "AccessDenied"]
    assert (first.fired, second.fired, hits(stage, 1)) == (1, 1, ".")


def test_a_with_block_clears_it_and_remembers_how_often_it_hit(stage: Stage) -> None:
    with stage.faults.throttle("SendMessage", queue=stage.name, count=None) as fault:
        assert hits(stage, 3) == "xxx"

    assert hits(stage, 1) == "."
    assert fault.fired == 3
    fault.clear()
    assert stage.faults.scripted() == []


def test_all_are_cleared_at_once(stage: Stage) -> None:
    fault = stage.faults.throttle("SendMessage", queue=stage.name)
    stage.faults.hang(queue=stage.name)

    stage.faults.clear()

    assert (hits(stage, 2), stage.faults.scripted()) == ("..", [])
    with pytest.raises(LookupError, match="cleared with all others"):
        _ = fault.fired


def test_the_script_can_be_read(stage: Stage) -> None:
    stage.faults.slow("SendMessage", seconds=2.5, when="after", queue="a*", count=None, seed=1)

    (fault,) = stage.faults.scripted()

    assert fault.pop("id")
    assert fault == {
        "fault": "slow",
        "seconds": 2.5,
        "when": "after",
        "operations": ["SendMessage"],
        "queue": "a*",
        "containing": None,
        "count": None,
        "skip": 0,
        "probability": 1.0,
        "seed": 1,
        "duration_seconds": None,
        "fired": 0,
        "over": False,
    }


def test_waiting_for_a_fault_that_does_not_come_ends(stage: Stage) -> None:
    fault = stage.faults.throttle(queue=stage.name)

    with pytest.raises(TimeoutError, match="has hit 0 of 2 calls"):
        fault.wait_until_fired(2, timeout_seconds=0.01)


@pytest.mark.parametrize("kind", KINDS)
def test_every_fault_has_a_method_of_its_name(stage: Stage, kind: str) -> None:
    needed: dict[str, dict[str, Any]] = {"slow": {"seconds": 1}, "error": {"code": "Odd"}}

    getattr(stage.faults, kind)(queue="nobody", **needed.get(kind, {}))

    assert [fault["fault"] for fault in stage.faults.scripted()] == [kind]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "send a JSON object such as"),
        ([], "send a JSON object such as"),
        ({}, "`fault` is missing: one of swallow, stale_receipt"),
        ({"fault": "throtle"}, "there is no fault 'throtle'; did you mean 'throttle'?"),
        ({"fault": "zzz"}, "there is no fault 'zzz'; there are swallow"),
        ({"fault": 7}, "there is no fault 7; there are swallow"),
        (
            {"fault": "throttle", "operation": "SendMessage"},
            "throttle has no setting 'operation'; did you mean 'operations'?",
        ),
        ({"fault": "throttle", "seconds": 2}, "throttle has no setting 'seconds'"),
        (
            {"fault": "throttle", "operations": "SendMessages"},
            "there is no operation 'SendMessages'; did you mean 'SendMessage'?",
        ),
        ({"fault": "throttle", "operations": []}, "`operations` is empty"),
        ({"fault": "throttle", "operations": 5}, "Expected `array`, got `int` - at `operations`"),
        ({"fault": "throttle", "count": 0}, "Expected `int` >= 1 - at `count`"),
        ({"fault": "throttle", "count": 1.5}, "Expected `int | null`, got `float` - at `count`"),
        ({"fault": "throttle", "skip": -1}, "at `skip`"),
        ({"fault": "throttle", "probability": 0}, "at `probability`"),
        ({"fault": "throttle", "probability": 1.1}, "at `probability`"),
        ({"fault": "throttle", "duration_seconds": 0}, "at `duration_seconds`"),
        ({"fault": "throttle", "queue": ""}, "at `queue`"),
        ({"fault": "throttle", "code": "Slow"}, "Invalid enum value 'Slow' - at `code`"),
        ({"fault": "server_error", "status": 404}, "Invalid enum value 404 - at `status`"),
        ({"fault": "slow"}, "missing required field `seconds`"),
        ({"fault": "slow", "seconds": 0}, "at `seconds`"),
        ({"fault": "slow", "seconds": 1, "when": "now"}, "Invalid enum value 'now' - at `when`"),
        ({"fault": "error", "code": "with space"}, "at `code`"),
        ({"fault": "fail_entries", "entries": [10]}, "at `entries[0]`"),
        ({"fault": "fail_entries", "share": 0}, "at `share`"),
        (
            {"fault": "swallow", "operations": "ListQueues"},
            "swallow cannot take hold of ListQueues, only of AddPermission",
        ),
        (
            {"fault": "fail_entries", "operations": "SendMessage"},
            "fail_entries cannot take hold of SendMessage, only of ChangeMessageVisibilityBatch, ",
        ),
        (
            {
                "fault": "stale_receipt",
                "code": "MessageNotInflight",
                "operations": "DeleteMessage",
            },
            "only of ChangeMessageVisibility, ChangeMessageVisibilityBatch",
        ),
        (
            {"fault": "duplicate", "queue": "orders.fifo"},
            "duplicate is for standard queues",
        ),
        ({"fault": "reorder", "containing": "x"}, "reorder has no setting 'containing'"),
    ],
)
def test_what_cannot_be_staged_is_told_in_terms_of_what_was_sent(
    content: object, problem: str
) -> None:
    body = b"" if content is None else json.dumps(content).encode()

    with pytest.raises(Unscriptable) as refusal:
        decoded(body, OPERATIONS)

    assert problem in str(refusal.value)


def test_a_fault_needs_no_more_than_its_name() -> None:
    kind, address = decoded(b'{"fault": "throttle"}', OPERATIONS)

    assert kind == Throttle()
    assert address == Address(seed=address.seed)


def test_one_operation_or_several_may_be_given() -> None:
    for operations in ('"SendMessage"', '["SendMessage"]'):
        text = f'{{"fault": "hang", "operations": {operations}}}'
        assert decoded(text.encode(), OPERATIONS).address.operations == ("SendMessage",)


def test_a_refusal_reaches_python_as_an_exception(stage: Stage) -> None:
    with pytest.raises(FaultRefused, match="did you mean 'SendMessage'"):
        stage.faults.throttle("SendMesage")

    assert stage.faults.scripted() == []


def test_a_fault_that_is_not_there_cannot_be_cleared(stage: Stage) -> None:
    url = f"{stage.aws.endpoint_url}/_localaws/faults/999999"

    with pytest.raises(HTTPError) as refusal:
        urlopen(Request(url, method="DELETE"))

    assert refusal.value.code == 404
    with refusal.value:
        assert "there is no fault '999999'; there are: none" in json.load(refusal.value)["error"]
