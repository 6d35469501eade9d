"""The script of faults on SNS and EventBridge: whole calls, and single entries of a batch."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from botocore.exceptions import ConnectionClosedError, ReadTimeoutError

from outboxd.testing import FaultRefused, FaultScript, LocalAws, local_aws
from tests.localaws.fanout import Fanout, an_entry, messages, open_fanout, refusal


class Way(NamedTuple):
    """A way to one queue, by either service; `name` is what a fault calls the topic or bus."""

    name: str
    url: str
    single: str
    batch: str
    send: Callable[..., Any]
    """One call with one entry for each body."""

    def failed(self, told: Any) -> list[tuple[int, str]]:
        """Position and code of each entry that failed."""
        if self.batch == "PutEvents":
            assert told["FailedEntryCount"] == sum("ErrorCode" in e for e in told["Entries"])
            entries = enumerate(told["Entries"])
            return [(n, each["ErrorCode"]) for n, each in entries if "ErrorCode" in each]
        return [(int(each["Id"].removeprefix("id-")), each["Code"]) for each in told["Failed"]]

    def succeeded(self, told: Any) -> list[str]:
        """The ids that were given."""
        if self.batch == "PutEvents":
            return [each["EventId"] for each in told["Entries"] if "EventId" in each]
        return [each["MessageId"] for each in told["Successful"]]


@pytest.fixture(params=["sns", "events"])
def way(request: pytest.FixtureRequest, fanout: Fanout) -> Way:
    return by_sns(fanout) if request.param == "sns" else by_events(fanout)


def by_sns(fanout: Fanout) -> Way:
    topic = fanout.topic()
    url = fanout.raw(topic)

    def send(*bodies: str) -> Any:
        return fanout.sns.publish_batch(
            TopicArn=topic, PublishBatchRequestEntries=messages(*bodies)
        )

    return Way(topic.rpartition(":")[2], url, "Publish", "PublishBatch", send)


def by_events(fanout: Fanout) -> Way:
    bus, url = fanout.bus(), fanout.queue()
    fanout.rule(bus, {"source": ["shop"]}, fanout.target(url, InputPath="$.detail.body"))

    def send(*bodies: str) -> Any:
        return fanout.put(bus, *({"body": body} for body in bodies))

    return Way(bus, url, "PutEvents", "PutEvents", send)


def delivered(fanout: Fanout, way: Way, expected: int) -> list[str]:
    """EventBridge sends JSON, in which a text has quotes."""
    return sorted(body.strip('"') for body in fanout.bodies(way.url, expected))


@pytest.mark.parametrize(
    ("script", "sns", "events"),
    [
        (lambda f, w: f.throttle(w.batch, queue=w.name), ("Throttling", 400),
         ("ThrottlingException", 400)),
        (lambda f, w: f.server_error(w.batch, queue=w.name), ("InternalFailure", 500),
         ("InternalFailure", 500)),
        (lambda f, w: f.server_error(w.batch, status=503, queue=w.name),
         ("ServiceUnavailable", 503), ("ServiceUnavailable", 503)),
        (lambda f, w: f.expired_token(w.batch, queue=w.name), ("ExpiredToken", 403),
         ("ExpiredTokenException", 400)),
        (lambda f, w: f.access_denied(w.batch, queue=w.name), ("AuthorizationError", 403),
         ("AccessDeniedException", 400)),
        (lambda f, w: f.error(w.batch, code="KMSDisabled", queue=w.name), ("KMSDisabled", 400),
         ("KMSDisabled", 400)),
    ],
)  # fmt: skip
def test_a_call_is_refused_in_the_words_of_its_service(
    fanout: Fanout,
    faults: FaultScript,
    way: Way,
    script: Any,
    sns: tuple[str, int],
    events: tuple[str, int],
) -> None:
    fault = script(faults, way)

    code, status, _ = refusal(lambda: way.send("a"))

    assert (code, status) == (sns if way.batch == "PublishBatch" else events)
    assert fault.fired == 1
    way.send("b")
    assert delivered(fanout, way, 1) == ["b"]


def test_access_is_denied_to_the_topic_and_to_the_bus(faults: FaultScript, way: Way) -> None:
    faults.access_denied(way.batch, queue=way.name)

    message = refusal(lambda: way.send("a"))[2]

    action = "SNS:Publish " if way.batch == "PublishBatch" else "events:PutEvents "
    assert action in message
    assert way.name in message


@pytest.mark.parametrize(("when", "count"), [("before", 0), ("after", 1)])
def test_the_connection_is_cut_before_or_after_the_work(
    fanout: Fanout, faults: FaultScript, way: Way, when: Any, count: int
) -> None:
    faults.reset(way.batch, queue=way.name, when=when)

    with pytest.raises(ConnectionClosedError):
        way.send("a")

    assert delivered(fanout, way, count) == ["a"] * count


def test_a_slow_call_succeeds(fanout: Fanout, faults: FaultScript, way: Way) -> None:
    fault = faults.slow(way.batch, seconds=0.05, queue=way.name)

    assert len(way.succeeded(way.send("a", "b"))) == 2

    assert fault.fired == 1
    assert delivered(fanout, way, 2) == ["a", "b"]


@pytest.mark.parametrize("service", ["sns", "events"])
def test_a_hanging_call_that_is_given_up_was_carried_out(service: str) -> None:
    with local_aws() as aws, open_fanout(aws.endpoint_url, read_timeout=2) as impatient:
        way = by_sns(impatient) if service == "sns" else by_events(impatient)
        fault = aws.faults.hang(way.batch, queue=way.name, when="after")

        with pytest.raises(ReadTimeoutError):
            way.send("a")

        assert fault.fired == 1
        assert delivered(impatient, way, 1) == ["a"]


def test_chosen_entries_fail_and_their_neighbours_arrive(
    fanout: Fanout, faults: FaultScript, way: Way
) -> None:
    faults.fail_entries(way.batch, entries=[0, 2], queue=way.name)

    told = way.send("a", "b", "c")

    code = "InternalError" if way.batch == "PublishBatch" else "InternalFailure"
    assert way.failed(told) == [(0, code), (2, code)]
    assert len(way.succeeded(told)) == 1
    assert delivered(fanout, way, 1) == ["b"]


def test_entries_fail_with_the_code_that_is_asked_for(faults: FaultScript, way: Way) -> None:
    faults.fail_entries(way.batch, code="ThrottlingException", entries=[1], queue=way.name)

    assert way.failed(way.send("a", "b")) == [(1, "ThrottlingException")]


def test_entries_may_fail_after_they_were_carried_out(
    fanout: Fanout, faults: FaultScript, way: Way
) -> None:
    faults.fail_entries(way.batch, entries=[1], when="after", queue=way.name)

    assert [position for position, _ in way.failed(way.send("a", "b"))] == [1]

    assert delivered(fanout, way, 2) == ["a", "b"]


def test_all_entries_may_fail(fanout: Fanout, faults: FaultScript, way: Way) -> None:
    faults.fail_entries(way.batch, queue=way.name)

    told = way.send("a", "b")

    assert [position for position, _ in way.failed(told)] == [0, 1]
    assert way.succeeded(told) == []
    assert delivered(fanout, way, 0) == []


def test_entries_are_chosen_by_what_they_hold(
    fanout: Fanout, faults: FaultScript, way: Way
) -> None:
    fault = faults.fail_entries(way.batch, containing="o-17", queue=way.name)

    way.send("o-16")
    told = way.send("o-16", "o-17")

    assert [position for position, _ in way.failed(told)] == [1]
    assert fault.fired == 1
    assert delivered(fanout, way, 2) == ["o-16", "o-16"]


def test_swallowed_entries_look_accepted(fanout: Fanout, faults: FaultScript, way: Way) -> None:
    faults.swallow(way.batch, entries=[0], queue=way.name)

    told = way.send("a", "b")

    assert len(set(way.succeeded(told))) == 2
    assert way.failed(told) == []
    assert delivered(fanout, way, 1) == ["b"]


def test_a_batch_that_is_refused_as_a_whole_is_still_refused(faults: FaultScript, way: Way) -> None:
    fault = faults.fail_entries(way.batch, queue=way.name)

    code = refusal(lambda: way.send(*"abcdefghijk"))[0]

    assert code in ("TooManyEntriesInBatchRequest", "ValidationException")
    assert fault.fired == 0


def test_what_fails_by_itself_fails_beside_the_fault(fanout: Fanout, faults: FaultScript) -> None:
    bus = fanout.bus()
    faults.fail_entries("PutEvents", entries=[0], queue=bus)

    told = fanout.events.put_events(
        Entries=[an_entry(bus), an_entry(bus, Detail="{"), an_entry(bus)]
    )

    codes = [each.get("ErrorCode") for each in told["Entries"]]
    assert codes == ["InternalFailure", "MalformedDetail", None]
    assert told["FailedEntryCount"] == 2


def test_a_fault_of_another_name_does_not_hit(faults: FaultScript, way: Way) -> None:
    fault = faults.throttle(queue="other-*", count=None)

    way.send("a")

    assert fault.fired == 0


def test_single_calls_are_hit_and_swallowed(fanout: Fanout, faults: FaultScript) -> None:
    topic = fanout.topic(".fifo", ContentBasedDeduplication="true")
    url = fanout.raw(topic, ".fifo")
    name = topic.rpartition(":")[2]
    asked: dict[str, Any] = {"TopicArn": topic, "Message": "x", "MessageGroupId": "g"}
    faults.swallow("Publish", queue=name)
    faults.throttle("Publish", queue=name)

    swallowed = fanout.sns.publish(**asked)

    assert swallowed["MessageId"]
    assert swallowed["SequenceNumber"]
    assert refusal(fanout.sns.publish, **asked)[0] == "Throttling"
    assert fanout.bodies(url, 0) == []


def test_calls_without_a_result_are_swallowed(fanout: Fanout, faults: FaultScript) -> None:
    topic, bus = fanout.topic(), fanout.bus()
    faults.swallow("DeleteTopic", queue=topic.rpartition(":")[2])
    faults.swallow("DeleteEventBus", queue=bus)

    fanout.sns.delete_topic(TopicArn=topic)
    fanout.events.delete_event_bus(Name=bus)

    assert fanout.sns.get_topic_attributes(TopicArn=topic)["Attributes"]
    assert fanout.events.describe_event_bus(Name=bus)["Name"] == bus


def test_a_fault_of_a_queue_does_not_hit_what_is_delivered_to_it(
    fanout: Fanout, faults: FaultScript, way: Way
) -> None:
    queue = way.url.rpartition("/")[2]
    fault = faults.throttle("SendMessage", queue=queue)

    way.send("a")

    assert fault.fired == 0
    assert delivered(fanout, way, 1) == ["a"]


def test_what_a_fault_cannot_hit_is_said(faults: FaultScript) -> None:
    for operation in ("PublishBatch", "PutEvents"):
        with pytest.raises(FaultRefused, match="cannot take hold"):
            faults.stale_receipt(operation)
    with pytest.raises(FaultRefused, match="cannot take hold"):
        faults.swallow("PutTargets")


@pytest.fixture
def alone() -> Any:
    with local_aws() as aws, open_fanout(aws.endpoint_url) as fanout:
        yield aws, fanout


def test_calls_are_counted_by_topic_and_bus(alone: tuple[LocalAws, Fanout]) -> None:
    aws, fanout = alone
    topic, bus = fanout.topic(), fanout.bus()
    url = fanout.raw(topic)
    rule = fanout.rule(bus, {"source": ["shop"]}, fanout.target(url))
    aws.reset_calls()

    fanout.sns.publish(TopicArn=topic, Message="x")
    fanout.put(bus, {})
    fanout.events.put_events(Entries=[an_entry(bus), an_entry("none")])
    fanout.sns.list_topics()
    fanout.events.describe_rule(Name=rule, EventBusName=bus)
    fanout.events.list_event_buses()

    assert [tuple(each) for each in map(_counted, aws.call_counts())] == [
        ("events", "DescribeRule", bus, 1),
        ("events", "ListEventBuses", None, 1),
        ("events", "PutEvents", None, 1),
        ("events", "PutEvents", bus, 1),
        ("sns", "ListTopics", None, 1),
        ("sns", "Publish", topic.rpartition(":")[2], 1),
    ]


def _counted(count: Any) -> tuple[str, str, str | None, int]:
    return count.service, count.operation, count.queue, count.count
