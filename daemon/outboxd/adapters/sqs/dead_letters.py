"""Opens a dead-letter queue: to look into it, to send letters back, or to delete them."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

from outboxd.adapters.aws.outages import AWS_ERRORS, outage
from outboxd.adapters.sqs.client import sqs_client
from outboxd.adapters.sqs.letter_moves import LetterMoves, Pace
from outboxd.adapters.sqs.letter_reports import DeadLetterQueue, Report, without_body
from outboxd.adapters.sqs.letter_scan import WAIT_SECONDS, LetterScan
from outboxd.adapters.sqs.queue import SqsQueue
from outboxd.core.errors import Unavailable
from outboxd.core.letter_filters import Selection
from outboxd.core.redrive import Comebacks, Entry
from outboxd.core.settings import Settings, is_fifo
from outboxd.ports.queue import BATCH, Queue

LOOKING_SECONDS = 30
"""How long letters that were only looked at stay hidden if this process is killed."""

WORKING_SECONDS = 120
"""The same for work: above a receive, a send and a delete that all run into their timeouts, or a
second redrive could take letters that the first one is sending. To a FIFO queue they go one by
one, which may take longer; there the deduplication id keeps a letter from being sent twice."""

Told = Callable[[Report], None]
Seen = Callable[[Sequence[Entry]], None]


def _nobody(_: object) -> None:
    return


@contextmanager
def dead_letters(
    settings: Settings,
    queue: str,
    *,
    redriving: bool = False,
    hidden_seconds: int = LOOKING_SECONDS,
    stopping: Callable[[], bool],
) -> Iterator["DeadLetters"]:
    """The dead letters of the configured queue `queue`; for `redriving` that one must exist too.

    What is held stays hidden for `hidden_seconds` if this process is killed. Raises Unavailable,
    with what to do about it, if SQS cannot be asked.
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
        # The consumer's adapter the other way round: it receives letters and "buries" messages.
        reverse = SqsQueue(client, client, name, source, hidden_seconds, of_dead_letters=True)
        yield DeadLetters(about, source, reverse, hidden_seconds, stopping)
    finally:
        client.close()


class DeadLetters:
    """Never removes a letter that it was not asked to, and gives back every one that it leaves.

    `stopping` is asked between batches, so that a stop leaves each letter either done with or in
    the dead-letter queue. Each work may be repeated: what is left to do is what is in the queue.
    """

    def __init__(
        self,
        about: DeadLetterQueue,
        target: str,
        queue: Queue,
        hidden_seconds: float,
        stopping: Callable[[], bool],
    ) -> None:
        self.about = about
        self.target = target
        self._queue = queue
        self._hidden_seconds = hidden_seconds
        self._stopping = stopping

    @property
    def stopped(self) -> bool:
        """Whether the work may have ended early because it was asked to."""
        return self._stopping()

    async def look(self, selection: Selection, limit: int | None) -> Report:
        """Find up to `limit` letters and leave them where they are."""
        report = Report()
        async with self._scanning(report) as scan:
            async for wanted in self._wanted(scan, report, selection, limit):
                report.found += wanted
        return report

    async def export(
        self, selection: Selection, limit: int | None, seen: Seen, told: Told = _nobody
    ) -> Report:
        """The same for any number of them: `seen` is given each batch, with its bodies."""
        report = Report()
        async with self._scanning(report) as scan:
            async for wanted in self._wanted(scan, report, selection, limit):
                seen(wanted)
                report.found += map(without_body, wanted)
                told(report)
        return report

    async def redrive(
        self,
        selection: Selection,
        limit: int | None,
        told: Told = _nobody,
        *,
        pace: Pace | None = None,
        before: Seen = _nobody,
    ) -> Report:
        """Send up to `limit` letters back to the queue, and delete each whose send is confirmed.

        A letter is in both queues after a kill between a send and its delete, a send whose answer
        is lost, or a delete that fails; of each of these there are BATCH at the most. `before` is
        given what is about to be sent.
        """
        report = Report()
        comebacks = Comebacks()
        moves = LetterMoves(self._queue, self.target, pace or Pace(None), report)
        async with self._scanning(report) as scan:
            async for wanted in self._wanted(scan, report, selection, limit, comebacks):
                left = wanted
                while left and (number := await moves.turn(len(left), self._stopping)):
                    batch, left = left[:number], left[number:]
                    report.found += map(without_body, batch)
                    before(batch)
                    await moves.send(batch, scan, comebacks)
                    told(report)
        return report

    async def purge(
        self, selection: Selection, limit: int | None, told: Told = _nobody, *, began: float
    ) -> Report:
        """Delete up to `limit` letters for good, but none that was buried after Unix time `began`:
        nobody can have meant it. By two clocks, so it is a precaution and no promise."""
        report = Report()
        moves = LetterMoves(self._queue, self.target, Pace(None), report)
        async with self._scanning(report) as scan:
            async for wanted in self._wanted(scan, report, selection, limit):
                batch = [entry for entry in wanted if entry.message.sent_at <= began]
                report.newer += [without_body(e) for e in wanted if e.message.sent_at > began]
                report.found += map(without_body, batch)
                if batch:
                    await moves.delete(batch, scan)
                told(report)
        return report

    async def _wanted(
        self,
        scan: LetterScan,
        report: Report,
        selection: Selection,
        limit: int | None,
        comebacks: Comebacks | None = None,
    ) -> AsyncIterator[list[Entry]]:
        """Batch after batch of the wanted letters, until `report` has found `limit` of them."""
        while (room := _room(limit, report.found)) and (
            entries := await scan.more(BATCH if selection.narrows else room)
        ):
            report.looked_at += len(entries)
            report.elsewhere.update(
                entry.source_queue or "" for entry in entries if selection.is_elsewhere(entry)
            )
            wanted = [entry for entry in entries if selection.wants(entry)]
            back = [e for e in wanted if comebacks is not None and comebacks.knows(e)]
            report.came_back += map(without_body, back)
            yield [entry for entry in wanted if entry not in back][:room]

    @asynccontextmanager
    async def _scanning(self, report: Report) -> AsyncIterator[LetterScan]:
        """Letters one after the other; at the end those that are still there are given back."""
        scan = LetterScan(
            self._queue,
            self._stopping,
            fifo=is_fifo(self.about.name),
            hidden_seconds=self._hidden_seconds,
        )
        try:
            yield scan
        except Unavailable as error:
            report.outage = str(error)
        finally:
            report.cut_groups = scan.cut_groups
            report.still_hidden = await scan.release()


def _room(limit: int | None, found: Sequence[Entry]) -> int:
    return BATCH if limit is None else min(BATCH, limit - len(found))


@contextmanager
def _explained(doing: str, endpoint_url: str | None) -> Iterator[None]:
    try:
        yield
    except AWS_ERRORS as error:
        raise outage(error, doing, endpoint_url=endpoint_url) from error
