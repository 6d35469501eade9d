"""A look through a dead-letter queue finds what SQS can show, ends, and leaves no trace."""

from collections.abc import Sequence

from hypothesis import example, given
from hypothesis import strategies as st

from outboxd.adapters.sqs.letter_scan import LetterScan
from outboxd.core.letters import Letter
from outboxd.core.messages import ReceivedMessage
from outboxd.localaws.errors import AwsError
from outboxd.localaws.sqs.queue import Queue as LocalQueue
from outboxd.ports.queue import Depth, Hiding, Refusal
from tests.localaws.support import Engine

MOST_RECEIVES = 1000


class EngineQueue:
    """A queue of localaws without its server; only what a scan uses."""

    def __init__(self, engine: Engine, queue: LocalQueue) -> None:
        self._engine = engine
        self._queue = queue
        self.seconds_per_receive = 0.0
        self.receives = 0

    async def receive(self, limit: int, wait_seconds: int) -> Sequence[ReceivedMessage]:
        self.receives += 1
        assert self.receives < MOST_RECEIVES, "it never ends"
        self._engine.wait(self.seconds_per_receive)
        return [
            ReceivedMessage(
                message_id=message.id,
                receipt_handle=handle,
                receive_count=message.receives,
                sent_at=message.sent_at,
                body=message.body,
                group_id=message.group,
            )
            for message, handle in self._engine.receive(self._queue, limit)
        ]

    async def hide(self, hidings: Sequence[Hiding]) -> Sequence[Refusal]:
        refusals: list[Refusal] = []
        for index, hiding in enumerate(hidings):
            try:
                self._queue.change_visibility(
                    hiding.receipt_handle, hiding.seconds, self._engine.now
                )
            except AwsError as error:
                refusals.append(Refusal(index, error.code, error.message, permanent=True))
        return refusals

    async def delete(self, receipt_handles: Sequence[str]) -> Sequence[Refusal]:
        for handle in receipt_handles:
            self._queue.delete(handle, self._engine.now)
        return []

    async def bury(self, letters: Sequence[Letter]) -> Sequence[Refusal]:
        raise NotImplementedError

    async def depth(self) -> Depth:
        raise NotImplementedError


def numbered(groups: str) -> list[str]:
    """ "aab" as a0, a1, b0."""
    return [f"{group}{groups[:at].count(group)}" for at, group in enumerate(groups)]


def in_order(bodies: Sequence[str], group: str) -> list[str]:
    return [body for body in bodies if body[0] == group]


async def all_of(scan: LetterScan, limit: int) -> list[str]:
    found: list[str] = []
    while entries := await scan.more(limit):
        found += [entry.message.body for entry in entries]
    return found


GROUPS = st.text("abcdefghijkl", max_size=60) | st.text("ab", max_size=40)


# Of groups that were released, one comes with more than before, and the others not at all.
@example("addcccbdaaddcadbbcbbd", 3)
@given(GROUPS, st.integers(1, 10))
async def test_a_scan_shows_ten_of_every_group_in_order(groups: str, limit: int) -> None:
    engine = Engine()
    local = engine.queue("letters.fifo")
    engine.send_all(local, *numbered(groups))
    scan = LetterScan(EngineQueue(engine, local), lambda: False, fifo=True)

    found = await all_of(scan, limit)

    for group in set(groups):
        there = groups.count(group)
        seen = in_order(found, group)
        assert seen == [f"{group}{n}" for n in range(len(seen))]
        assert len(seen) >= min(there, 10)
        assert len(seen) == there or group in scan.cut_groups
    assert len(found) == len(set(found))
    assert await scan.release() is None
    assert engine.depth(local) == (len(groups), 0, 0)


@given(GROUPS)
async def test_a_scan_that_deletes_what_it_sees_sees_everything(groups: str) -> None:
    engine = Engine()
    local = engine.queue("letters.fifo")
    engine.send_all(local, *numbered(groups))
    queue = EngineQueue(engine, local)
    scan = LetterScan(queue, lambda: False, fifo=True)
    found: list[str] = []

    while entries := await scan.more(10):
        for entry in entries:
            found.append(entry.message.body)
            await queue.delete([entry.message.receipt_handle])
            scan.forget(entry)

    for group in set(groups):
        assert in_order(found, group) == [f"{group}{n}" for n in range(groups.count(group))]
    assert scan.cut_groups == []


@given(GROUPS, st.integers(1, 10), st.sampled_from([0.0, 1.0, 7.0, 40.0]))
async def test_a_scan_ends_also_when_letters_become_visible_under_it(
    groups: str, limit: int, seconds: float
) -> None:
    engine = Engine()
    local = engine.queue("letters.fifo", VisibilityTimeout=30)
    engine.send_all(local, *numbered(groups))
    queue = EngineQueue(engine, local)
    queue.seconds_per_receive = seconds
    scan = LetterScan(queue, lambda: False, fifo=True)

    found = await all_of(scan, limit)

    assert len(found) == len(set(found))


async def test_a_probed_letter_that_somebody_else_took_does_not_stop_the_scan() -> None:
    engine = Engine()
    local = engine.queue("letters.fifo")
    engine.send_all(local, *numbered("a" * 9 + "b" * 9))

    class Greedy(EngineQueue):
        async def hide(self, hidings: Sequence[Hiding]) -> Sequence[Refusal]:
            refusals = await super().hide(hidings)
            engine.receive(local, 10)
            return refusals

    scan = LetterScan(Greedy(engine, local), lambda: False, fifo=True)

    assert len(await all_of(scan, 10)) >= 10


@given(st.integers(0, 60))
async def test_a_standard_queue_is_gone_through_without_probing(number: int) -> None:
    engine = Engine()
    local = engine.queue("letters")
    for n in range(number):
        engine.send(local, str(n), message_group_id="tenant")
    queue = EngineQueue(engine, local)
    scan = LetterScan(queue, lambda: False, fifo=False)

    assert sorted(map(int, await all_of(scan, 10))) == list(range(number))
    assert queue.receives == number // 10 + (1 if number % 10 == 0 else 2)
    assert scan.cut_groups == []


async def test_a_scan_goes_on_behind_letters_that_are_visible_again() -> None:
    """Slow work: what was seen first is visible again while most of the queue is still unseen."""
    engine = Engine()
    local = engine.queue("letters", VisibilityTimeout=30)
    for n in range(400):
        engine.send(local, str(n))

    class Slow(EngineQueue):
        async def receive(self, limit: int, wait_seconds: int) -> Sequence[ReceivedMessage]:
            if self.receives == 20:
                engine.wait(31)
            return await super().receive(limit, wait_seconds)

    queue = Slow(engine, local)
    scan = LetterScan(queue, lambda: False, fifo=False)

    assert sorted(map(int, await all_of(scan, 10))) == list(range(400))


class Counted(EngineQueue):
    """Knows which receipts were given back."""

    given_back: tuple[str, ...] = ()

    async def hide(self, hidings: Sequence[Hiding]) -> Sequence[Refusal]:
        self.given_back += tuple(hiding.receipt_handle for hiding in hidings)
        return await super().hide(hidings)


async def test_what_is_visible_again_by_itself_is_not_given_back() -> None:
    """Somebody else may have it by now."""
    engine = Engine()
    local = engine.queue()
    queue = Counted(engine, local)
    engine.send(local, "early")
    scan = LetterScan(queue, lambda: False, fifo=False, hidden_seconds=30, clock=lambda: engine.now)
    assert [entry.message.body for entry in await scan.more(10)] == ["early"]
    engine.wait(31)
    ((_, other),) = engine.receive(local, 10)
    engine.send(local, "late")
    assert [entry.message.body for entry in await scan.more(10)] == ["late"]

    await scan.release()

    assert len(queue.given_back) == 1
    assert other not in queue.given_back
    assert [message.body for message, _ in engine.receive(local, 10)] == ["late"]
