"""One promise, kept by every kind of destination: what the port says, on servers that check."""

import json
import logging
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from uuid import UUID

import pytest

from outboxd.core.envelopes import open_envelope
from outboxd.core.errors import OutageKind, Unavailable
from outboxd.core.relay_outcomes import Accepted, Faulted, Refused
from outboxd.core.settings import Envelope
from outboxd.ports.destination import Entry, PackRefused, Withheld
from outboxd.testing import FaultScript, LocalAws, local_aws
from tests.emulators import moto
from tests.localaws.fanout import Fanout, open_fanout
from tests.relay.destination_benches import (
    TRACE,
    Bench,
    an_event,
    eventbridge_bench,
    log_bench,
    memory_bench,
    sns_bench,
    sqs_bench,
    still_ours,
)

REMOTE: dict[str, Callable[[Fanout], Bench]] = {
    "sqs": sqs_bench,
    "sqs.fifo": lambda fanout: sqs_bench(fanout, ".fifo"),
    "sns": sns_bench,
    "sns by arn": lambda fanout: sns_bench(fanout, by_arn=True),
    "sns wrapped": lambda fanout: sns_bench(fanout, raw=False),
    "sns.fifo": lambda fanout: sns_bench(fanout, ".fifo"),
    "eventbridge": eventbridge_bench,
}
FAIR: dict[str, Callable[[Fanout], Bench]] = {
    "sqs": lambda fanout: sqs_bench(fanout, fair=True),
    "sns": lambda fanout: sns_bench(fanout, fair=True),
}
HERE = ("log", "memory")
ENVELOPES: tuple[Envelope, ...] = ("event", "job", "cloudevents")


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    with local_aws() as aws:
        yield aws


@pytest.fixture(scope="module")
def fanout(aws: LocalAws) -> Iterator[Fanout]:
    with open_fanout(aws.endpoint_url, read_timeout=1.0) as fanout:
        yield fanout


@pytest.fixture
def faults(aws: LocalAws) -> Iterator[FaultScript]:
    yield aws.faults
    aws.faults.clear()


@pytest.fixture(params=[*REMOTE, *HERE])
def bench(
    request: pytest.FixtureRequest, fanout: Fanout, caplog: pytest.LogCaptureFixture
) -> Bench:
    """Any destination, ready to be sent to."""
    if request.param == "memory":
        return memory_bench()
    if request.param == "log":
        caplog.set_level(logging.INFO)
        return log_bench(lambda: [each for each in caplog.records if hasattr(each, "body")])
    bench = REMOTE[request.param](fanout)
    bench.create()
    return bench


@pytest.fixture(params=REMOTE)
def missing(request: pytest.FixtureRequest, fanout: Fanout) -> Bench:
    """A destination in AWS that does not exist yet."""
    return REMOTE[request.param](fanout)


@pytest.fixture
def remote(missing: Bench) -> Bench:
    missing.create()
    missing.destination.open()
    return missing


def test_what_is_not_ours_any_more_stays_here(bench: Bench) -> None:
    asked: list[float] = []

    def not_any_more(seconds: float) -> bool:
        asked.append(seconds)
        return False

    bench.destination.open()
    with pytest.raises(Withheld):
        bench.destination.send(bench.entries(an_event(1), an_event(2)), not_any_more)
    assert asked == [bench.destination.call_seconds]

    # It is no outage: the next call leaves without another look for the destination.
    assert bench.destination.send(bench.entries(an_event(3)), still_ours) == [Accepted()]
    (message,) = bench.arrived(1)
    assert open_envelope(message).id == UUID(an_event(3).id)


@pytest.mark.parametrize("envelope", ENVELOPES)
def test_a_consumer_gets_the_event_that_was_published(bench: Bench, envelope: Envelope) -> None:
    payload = '{"text": "\ufffe \uffff é 😀 \\u0001", "amount": 12.50}'
    event = an_event(7, payload)
    bench.destination.open()

    results = bench.destination.send(bench.entries(event, envelope=envelope), still_ours)

    assert results == [Accepted()]
    (message,) = bench.arrived(1)
    incoming = open_envelope(message)
    assert (incoming.id, incoming.type) == (UUID(event.id), "order.placed")
    assert json.loads(bytes(incoming.payload)) == json.loads(payload)
    assert incoming.traceparent == TRACE
    if envelope != "job":
        assert (incoming.aggregate_type, incoming.aggregate_id) == ("order", "o-7")
        assert incoming.occurred_at == datetime(2026, 1, 1, microsecond=123456, tzinfo=UTC)


def test_ten_events_leave_in_one_call(bench: Bench) -> None:
    events = [an_event(number) for number in range(10)]
    bench.destination.open()

    assert bench.destination.limits.entries >= 10
    assert bench.destination.send(bench.entries(*events), still_ours) == [Accepted()] * 10

    arrived = [open_envelope(message) for message in bench.arrived(10)]
    assert sorted(str(each.id) for each in arrived) == [event.id for event in events]


def test_a_call_takes_what_is_exactly_within_the_limits(remote: Bench) -> None:
    """The size of an entry is what the service counts: a byte more is refused there."""
    pack_bytes = remote.destination.limits.pack_bytes
    (empty,) = remote.entries(an_event(1, '""'))
    half = pack_bytes // 2 - empty.size

    pair = remote.entries(an_event(1, text(half)), an_event(2, text(half)))
    assert sum(entry.size for entry in pair) == pack_bytes
    assert remote.destination.send(pair, still_ours) == [Accepted()] * 2

    above = remote.entries(an_event(3, text(half)), an_event(4, text(half + 1)))
    with pytest.raises(PackRefused):
        remote.destination.send(above, still_ours)
    assert [remote.destination.send([entry], still_ours) for entry in above] == [[Accepted()]] * 2


@pytest.mark.parametrize("filling", ["x", "é", "\U0001f600"])
def test_an_event_that_is_too_large_is_refused_with_both_sizes(remote: Bench, filling: str) -> None:
    limit = remote.destination.limits.entry_bytes
    letters = limit // len(filling.encode())
    fits = an_event(payload=text(letters - 2_000, filling))
    too_large = an_event(payload=text(letters + 1, filling))

    assert isinstance(remote.destination.prepare(fits, "event"), Entry)
    refused = remote.destination.prepare(too_large, "event")

    assert isinstance(refused, Refused)
    assert f" {limit} bytes" in refused.reason
    assert refused.reason.count(" bytes") == 2


def test_what_does_not_exist_is_an_outage_until_it_does(missing: Bench) -> None:
    with pytest.raises(Unavailable, match="run `outboxd provision`") as caught:
        missing.destination.open()
    assert caught.value.kind is OutageKind.MISSING

    missing.create()
    missing.destination.open()
    assert missing.destination.send(missing.entries(an_event()), still_ours) == [Accepted()]


def test_what_is_deleted_is_an_outage_until_it_is_back(aws: LocalAws, remote: Bench) -> None:
    remote.delete()
    remote.advance(60.0)

    with pytest.raises(Unavailable) as caught:
        published(remote)
    assert caught.value.kind is OutageKind.MISSING

    with pytest.raises(Unavailable) as still:
        remote.destination.open()
    assert still.value.kind is OutageKind.MISSING
    aws.advance(61)  # SQS gives the name of a deleted queue again after a minute only
    remote.create()
    remote.destination.open()
    assert remote.destination.send(remote.entries(an_event(2)), still_ours) == [Accepted()]


OUTAGES: dict[OutageKind, Callable[[FaultScript, Bench], object]] = {
    OutageKind.THROTTLED: lambda f, b: f.throttle(b.operation, queue=b.name),
    OutageKind.SERVER_FAULT: lambda f, b: f.server_error(b.operation, queue=b.name),
    OutageKind.DENIED: lambda f, b: f.access_denied(b.operation, queue=b.name),
    OutageKind.CREDENTIALS: lambda f, b: f.expired_token(b.operation, queue=b.name),
    OutageKind.TIMEOUT: lambda f, b: f.reset(b.operation, queue=b.name),
}


@pytest.mark.parametrize("kind", OUTAGES)
def test_a_call_that_fails_as_a_whole_is_an_outage(
    remote: Bench, faults: FaultScript, kind: OutageKind
) -> None:
    OUTAGES[kind](faults, remote)

    with pytest.raises(Unavailable) as caught:
        remote.destination.send(remote.entries(an_event()), still_ours)
    assert caught.value.kind is kind

    remote.destination.open()
    assert remote.destination.send(remote.entries(an_event()), still_ours) == [Accepted()]


def test_a_call_without_an_answer_may_have_been_accepted(
    remote: Bench, faults: FaultScript
) -> None:
    faults.hang(remote.operation, queue=remote.name)

    with pytest.raises(Unavailable) as caught:
        remote.destination.send(remote.entries(an_event()), still_ours)
    assert caught.value.kind is OutageKind.TIMEOUT


def test_entries_fail_one_by_one(remote: Bench, faults: FaultScript) -> None:
    faults.fail_entries(remote.operation, queue=remote.name, entries=[1, 3])

    results = remote.destination.send(remote.entries(*map(an_event, range(5))), still_ours)

    assert [type(said) for said in results] == [Accepted, Faulted, Accepted, Faulted, Accepted]
    assert not any(said.blameless for said in results if isinstance(said, Faulted))
    assert len(remote.arrived(3)) == 3


def test_a_throttled_entry_is_not_to_blame(remote: Bench, faults: FaultScript) -> None:
    code = "ThrottlingException" if remote.kind == "eventbridge" else "Throttled"
    faults.fail_entries(remote.operation, queue=remote.name, entries=[0], code=code)

    results = remote.destination.send(remote.entries(an_event(1), an_event(2)), still_ours)

    (throttled, accepted) = results
    assert isinstance(throttled, Faulted)
    assert throttled.blameless
    assert accepted == Accepted()


def test_an_event_without_an_aggregate_and_a_trace_arrives(bench: Bench) -> None:
    event = an_event(aggregate_type="", aggregate_id="", traceparent=None)
    bench.destination.open()

    assert bench.destination.send(bench.entries(event), still_ours) == [Accepted()]

    (message,) = bench.arrived(1)
    assert open_envelope(message).id == UUID(event.id)


@pytest.mark.parametrize("kind", ["sqs.fifo", "sns.fifo"])
def test_a_fifo_destination_keeps_groups_and_takes_an_event_once(fanout: Fanout, kind: str) -> None:
    bench = REMOTE[kind](fanout)
    bench.create()
    bench.destination.open()
    entries = bench.entries(an_event(1), an_event(2, aggregate_id="ключ " * 40))

    assert bench.destination.send(entries, still_ours) == [Accepted()] * 2
    assert bench.destination.send(entries, still_ours) == [Accepted()] * 2

    messages = bench.arrived(2)
    assert len(messages) == 2
    groups = sorted(message.group_id or "" for message in messages)
    assert "order/o-1" in groups
    assert all(len(group) in (9, 32) for group in groups)


@pytest.mark.parametrize("kind", ["sqs", "sns"])
def test_fair_groups_give_standard_messages_their_aggregate(fanout: Fanout, kind: str) -> None:
    bench = FAIR[kind](fanout)
    bench.create()
    bench.destination.open()

    assert bench.destination.send(bench.entries(an_event(1)), still_ours) == [Accepted()]

    assert [message.group_id for message in bench.arrived(1)] == ["order/o-1"]


@pytest.fixture(scope="module")
def second_opinion() -> Iterator[Fanout]:
    with moto() as endpoint, open_fanout(endpoint) as fanout:
        yield fanout


@pytest.mark.parametrize("envelope", ENVELOPES)
@pytest.mark.parametrize("kind", [kind for kind in REMOTE if kind != "sns by arn"])
def test_another_authors_aws_delivers_the_same(
    second_opinion: Fanout, kind: str, envelope: Envelope
) -> None:
    bench = REMOTE[kind](second_opinion)
    with pytest.raises(Unavailable):
        bench.destination.open()
    bench.create()
    bench.destination.open()
    event = an_event(3)

    assert bench.destination.send(bench.entries(event, envelope=envelope), still_ours) == [
        Accepted()
    ]

    (message,) = bench.arrived(1)
    incoming = open_envelope(message)
    assert (incoming.id, incoming.traceparent) == (UUID(event.id), TRACE)


def published(bench: Bench) -> None:
    bench.destination.open()
    bench.destination.send(bench.entries(an_event()), still_ours)


def text(letters: int, filling: str = "x") -> str:
    """A payload of so many letters and two quotes."""
    return json.dumps(filling * letters, ensure_ascii=False)
