"""Looks into a dead-letter queue, and sends letters back to the queue that they came from."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

import anyio
import msgspec

from outboxd.adapters.aws.outages import AWS_ERRORS, outage
from outboxd.adapters.sqs.client import sqs_client
from outboxd.adapters.sqs.letter_scan import WAIT_SECONDS, LetterScan
from outboxd.adapters.sqs.queue import SqsQueue
from outboxd.core.errors import Unavailable
from outboxd.core.redrive import Comebacks, Entry, Selection, in_turns, redriven
from outboxd.core.settings import Settings, is_fifo
from outboxd.ports.queue import BATCH, Queue, Refusal

LOOKING_SECONDS = 30
"""How long letters that were only looked at stay hidden if this process is killed."""

REDRIVING_SECONDS = 120
"""The same for a redrive: above a receive, a send and a delete that all run into their timeouts,
or a second redrive could take letters that the first one is sending. To a FIFO queue they go one by
one, which may take longer; there the deduplication id keeps a letter from being sent twice."""

DELETE_TRIES = 3

BEHIND_ANOTHER = "an earlier letter of its message group could not be sent"


class DeadLetterQueue(msgspec.Struct, frozen=True):
    """What SQS says of the queue itself; the counts are approximate."""

    name: str
    visible: int
    in_flight: int
    retention_seconds: int


class Failure(msgspec.Struct, frozen=True):
    """A letter that is still in the dead-letter queue; `sent` if it is also in its queue."""

    entry: Entry
    error: str
    sent: bool


class Report(msgspec.Struct):
    """What became of the letters; after a redrive they are without their bodies.

    `outage` is what ended the work early, `still_hidden` why letters could not be given back, and
    `cut_groups` are message groups that may have letters which SQS did not show.
    """

    found: list[Entry] = []
    done: list[Entry] = []
    failed: list[Failure] = []
    came_back: list[Entry] = []
    cut_groups: list[str] = []
    outage: str | None = None
    still_hidden: str | None = None


@contextmanager
def dead_letters(
    settings: Settings, queue: str, *, redriving: bool, stopping: Callable[[], bool]
) -> Iterator["DeadLetters"]:
    """The dead letters of the configured queue `queue`, to look at or also for `redriving`.

    Raises Unavailable, with what to do about it, if SQS cannot be asked.
    """
    name = settings.dead_letter_name(queue)
    endpoint = settings.aws.endpoint_url
    with _explained("setting up the AWS SDK", endpoint):
        # Single attempts: a send that the SDK repeats by itself is a duplicate.
        client = sqs_client(settings.aws, connections=1, wait_seconds=WAIT_SECONDS, attempts=1)
    try:
        with _explained(f"reading queue {name}", endpoint):
            url = client.get_queue_url(QueueName=name)["QueueUrl"]
            attributes = client.get_queue_attributes(
                QueueUrl=url,
                AttributeNames=[
                    "ApproximateNumberOfMessages",
                    "ApproximateNumberOfMessagesNotVisible",
                    "MessageRetentionPeriod",
                ],
            )["Attributes"]
        source = settings.sqs_queue_name(queue)
        if redriving:
            with _explained(f"reading queue {source}", endpoint):
                client.get_queue_url(QueueName=source)
        about = DeadLetterQueue(
            name,
            int(attributes["ApproximateNumberOfMessages"]),
            int(attributes["ApproximateNumberOfMessagesNotVisible"]),
            int(attributes["MessageRetentionPeriod"]),
        )
        hidden = REDRIVING_SECONDS if redriving else LOOKING_SECONDS
        # The consumer's adapter the other way round: it receives letters and "buries" messages.
        reverse = SqsQueue(client, client, name, source, hidden)
        yield DeadLetters(about, source, reverse, stopping)
    finally:
        client.close()


class DeadLetters:
    """Never removes a letter whose send SQS has not confirmed, and gives back every other one.

    `stopping` is asked between batches, so that a stop leaves each letter either sent and deleted
    or in the dead-letter queue. In both it is after a kill between a send and its delete, a send
    whose answer is lost, or a delete that fails.
    """

    def __init__(
        self, about: DeadLetterQueue, target: str, queue: Queue, stopping: Callable[[], bool]
    ) -> None:
        self.about = about
        self.target = target
        self._queue = queue
        self._stopping = stopping

    @property
    def stopped(self) -> bool:
        """Whether the work may have ended early because it was asked to."""
        return self._stopping()

    async def look(self, selection: Selection, limit: int | None) -> Report:
        """Find up to `limit` letters and leave them where they are."""
        report = Report()
        async with self._scanning(report) as scan:
            while (room := _room(limit, report.found)) and (
                entries := await scan.more(BATCH if selection.narrows else room)
            ):
                wanted = [entry for entry in entries if selection.wants(entry)]
                report.found += wanted[:room]
        return report

    async def redrive(
        self, selection: Selection, limit: int | None, told: Callable[[int], None]
    ) -> Report:
        """Send up to `limit` letters back to the queue; `told` hears how many are done."""
        report = Report()
        comebacks = Comebacks()
        async with self._scanning(report) as scan:
            while (room := _room(limit, report.found)) and (
                entries := await scan.more(BATCH if selection.narrows else room)
            ):
                wanted = [entry for entry in entries if selection.wants(entry)]
                back = [entry for entry in wanted if comebacks.knows(entry)]
                report.came_back += map(_without_body, back)
                batch = [entry for entry in wanted if entry not in back][:room]
                report.found += map(_without_body, batch)
                if batch:
                    await self._move(batch, scan, report, comebacks)
                    told(len(report.done))
        return report

    async def _move(
        self, batch: Sequence[Entry], scan: LetterScan, report: Report, comebacks: Comebacks
    ) -> None:
        turns = in_turns(batch, self.target)
        for number, turn in enumerate(turns):
            left = [entry for entry in turn if scan.has_left(entry)]
            report.failed += [_failure(entry, BEHIND_ANOTHER) for entry in left]
            try:
                await self._send([e for e in turn if e not in left], scan, report, comebacks)
            except Unavailable as error:
                waiting = [entry for later in turns[number + 1 :] for entry in later]
                report.failed += [_failure(entry, str(error)) for entry in waiting]
                raise

    async def _send(
        self, batch: Sequence[Entry], scan: LetterScan, report: Report, comebacks: Comebacks
    ) -> None:
        letters = [redriven(entry.message, self.target) for entry in batch]
        for letter in letters:
            comebacks.note(letter)
        try:
            refusals = await self._queue.bury(letters)
        except Unavailable as error:
            report.failed += [_failure(entry, str(error)) for entry in batch]
            raise
        refused = {refusal.index: refusal for refusal in refusals}
        for index, refusal in refused.items():
            report.failed.append(_failure(batch[index], _words(refusal)))
            scan.leave(batch[index])
        sent = [entry for index, entry in enumerate(batch) if index not in refused]
        kept = await self._delete(sent)
        report.failed += [_failure(sent[index], why, sent=True) for index, why in kept.items()]
        for index, entry in enumerate(sent):
            if index not in kept:
                report.done.append(_without_body(entry))
                scan.forget(entry)

    async def _delete(self, entries: Sequence[Entry]) -> dict[int, str]:
        """Delete, again where that failed, which does no harm; what is left, and why."""
        left = dict.fromkeys(range(len(entries)), "")
        for attempt in range(DELETE_TRIES):
            if not left:
                break
            await anyio.sleep(0.2 * attempt)
            asked = list(left)
            try:
                refusals = await self._queue.delete(
                    [entries[index].message.receipt_handle for index in asked]
                )
            except Unavailable as error:
                left = dict.fromkeys(asked, str(error))
            else:
                left = {asked[refusal.index]: _words(refusal) for refusal in refusals}
        return left

    @asynccontextmanager
    async def _scanning(self, report: Report) -> AsyncIterator[LetterScan]:
        """Letters one after the other; at the end those that are still there are given back."""
        scan = LetterScan(self._queue, self._stopping, fifo=is_fifo(self.about.name))
        try:
            yield scan
        except Unavailable as error:
            report.outage = str(error)
        finally:
            report.cut_groups = scan.cut_groups
            report.still_hidden = await scan.release()


def _room(limit: int | None, found: Sequence[Entry]) -> int:
    return BATCH if limit is None else min(BATCH, limit - len(found))


def _failure(entry: Entry, error: str, *, sent: bool = False) -> Failure:
    return Failure(_without_body(entry), error, sent)


def _without_body(entry: Entry) -> Entry:
    """For the report: the bodies of a hundred thousand letters are more than a machine holds."""
    bare = msgspec.structs.replace(entry.message, body="", attributes={})
    return msgspec.structs.replace(entry, message=bare)


def _words(refusal: Refusal) -> str:
    return f"{refusal.code}: {refusal.message}" if refusal.message else refusal.code


@contextmanager
def _explained(doing: str, endpoint_url: str | None) -> Iterator[None]:
    try:
        yield
    except AWS_ERRORS as error:
        raise outage(error, doing, endpoint_url=endpoint_url) from error
