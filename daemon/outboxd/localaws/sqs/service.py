"""SQS over HTTP: from a request to an answer, now or after a wait."""

from collections.abc import Iterator

import msgspec

from outboxd.localaws.alarm import Alarm
from outboxd.localaws.calls import Calls
from outboxd.localaws.clock import Clock
from outboxd.localaws.errors import AwsError, malformed, unknown_operation
from outboxd.localaws.exchange import Client, Reply
from outboxd.localaws.faults import DeliveryFaults, Faults, Target, passed
from outboxd.localaws.http1 import Answer, Request
from outboxd.localaws.region import region_of
from outboxd.localaws.sqs.answering import answer, refused
from outboxd.localaws.sqs.arns import parsed_arn, queue_name
from outboxd.localaws.sqs.call import Call, Waiting
from outboxd.localaws.sqs.inbox import Inbox
from outboxd.localaws.sqs.moves import MoveTasks
from outboxd.localaws.sqs.operations.table import OPERATIONS, Operation
from outboxd.localaws.sqs.polls import QueuePolls
from outboxd.localaws.sqs.queue import Queue
from outboxd.localaws.sqs.registry import Registry


class SqsService:
    """Speaks AWS JSON 1.0 for all queues of all regions. Needs a running event loop."""

    def __init__(
        self, clock: Clock, faults: Faults, deliveries: DeliveryFaults, calls: Calls
    ) -> None:
        self._clock = clock
        self._faults = faults
        self._deliveries = deliveries
        self._calls = calls
        self._registry = Registry(on_create=self._attend)
        self._moves = MoveTasks(self._registry)
        self._moves_alarm = Alarm(clock, self._run_moves)
        self._polls: dict[Queue, QueuePolls] = {}

        self.inbox = Inbox(self._registry, self._moves)

    def queues(self) -> Iterator[Queue]:
        return iter(self._registry)

    def close(self) -> None:
        self._moves_alarm.close()
        for polls in self._polls.values():
            polls.close()

    def handle(self, request: Request, action: str, client: Client) -> Reply:
        operation = OPERATIONS.get(action)
        if operation is None:
            return refused(unknown_operation("SQS", action))
        asked = _asked(operation, request)
        target = Target("sqs", action, region_of(request), _queue_of(asked))
        self._calls.add(target)
        return passed(
            self._faults,
            target,
            request,
            lambda r: self._perform(
                operation, asked if r is request else _asked(operation, r), r, target, client
            ),
            refused,
        )

    def _perform(
        self,
        operation: Operation,
        asked: msgspec.Struct | AwsError,
        request: Request,
        target: Target,
        client: Client,
    ) -> Reply:
        now = self._clock.now()
        call = Call(
            self._registry, self._moves, target.region, _base_url(request), now, self._deliveries
        )
        self._moves.run(now)
        if isinstance(asked, AwsError):
            return refused(asked)
        try:
            result = operation.act(call, asked)
        except AwsError as refusal:
            return refused(refusal)
        self._moves_alarm.set(self._moves.next_at())
        if isinstance(result, Waiting):
            return self._wait(result, client)
        return answer(result)

    def _wait(self, waiting: Waiting, client: Client) -> Reply:
        def attempt(now: float) -> Answer | None:
            try:
                response = waiting.attempt(now)
            except AwsError as refusal:
                return refused(refusal)
            return None if response is None else answer(response)

        polls = self._polls[waiting.queue]
        return polls.add(waiting, attempt, answer(waiting.otherwise), client)

    def _attend(self, queue: Queue) -> None:
        for old in [old for old in self._polls if old.deleted and len(self._polls[old]) == 0]:
            self._polls.pop(old).close()
        self._polls[queue] = QueuePolls(queue, self._clock)

    def _run_moves(self) -> None:
        self._moves.run(self._clock.now())
        self._moves_alarm.set(self._moves.next_at())


def _asked(operation: Operation, request: Request) -> msgspec.Struct | AwsError:
    """The decoded request, or what there is to say about one that cannot be."""
    try:
        return operation.decode(request.body)
    except msgspec.MsgspecError as error:
        return malformed(str(error))


def _base_url(request: Request) -> str:
    return f"http://{request.headers.get('host', 'localhost')}"


def _queue_of(asked: msgspec.Struct | AwsError) -> str | None:
    """The name of the queue that a request is about, if it is about one."""
    url = getattr(asked, "queue_url", "") or getattr(asked, "queue_name", "")
    if url:
        try:
            return queue_name(url)
        except AwsError:
            return None
    place = parsed_arn(getattr(asked, "source_arn", ""))
    return None if place is None else place[1]
