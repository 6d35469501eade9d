"""SQS over HTTP: from a request to an answer, now or after a wait."""

import re
from collections.abc import Iterator

import msgspec

from outboxd.localaws.alarm import Alarm
from outboxd.localaws.clock import Clock
from outboxd.localaws.errors import AwsError, malformed, unknown_operation
from outboxd.localaws.exchange import Client, Reply
from outboxd.localaws.faults import Faults, Target, under
from outboxd.localaws.http1 import Answer, Request
from outboxd.localaws.ids import new_id
from outboxd.localaws.sqs.arns import queue_name
from outboxd.localaws.sqs.call import Call, Waiting
from outboxd.localaws.sqs.moves import MoveTasks
from outboxd.localaws.sqs.operations.table import OPERATIONS, Operation
from outboxd.localaws.sqs.polls import QueuePolls
from outboxd.localaws.sqs.queue import Queue
from outboxd.localaws.sqs.registry import Registry

DEFAULT_REGION = "us-east-1"
CONTENT_TYPE = "application/x-amz-json-1.0"

_SCOPE = re.compile(r"Credential=[^/,]+/\d+/([a-z0-9-]+)/")

_encode = msgspec.json.Encoder().encode


class SqsService:
    """Speaks AWS JSON 1.0 for all queues of all regions. Needs a running event loop."""

    def __init__(self, clock: Clock, faults: Faults) -> None:
        self._clock = clock
        self._faults = faults
        self._registry = Registry(on_create=self._attend)
        self._moves = MoveTasks(self._registry)
        self._moves_alarm = Alarm(clock, self._run_moves)
        self._polls: dict[Queue, QueuePolls] = {}

    def queues(self) -> Iterator[Queue]:
        return iter(self._registry)

    def close(self) -> None:
        self._moves_alarm.close()
        for polls in self._polls.values():
            polls.close()

    def handle(self, request: Request, action: str, client: Client) -> Reply:
        operation = OPERATIONS.get(action)
        if operation is None:
            return _refusal(unknown_operation("SQS", action))
        if self._faults.active:
            fault = self._faults.for_call(_target(request, action))
            if fault is not None:
                return under(fault, request, lambda: self._perform(operation, request, client))
        return self._perform(operation, request, client)

    def _perform(self, operation: Operation, request: Request, client: Client) -> Reply:
        now = self._clock.now()
        call = Call(self._registry, self._moves, _region(request), _base_url(request), now)
        self._moves.run(now)
        try:
            result = operation.act(call, operation.decode(request.body))
        except AwsError as refusal:
            return _refusal(refusal)
        except msgspec.MsgspecError as error:
            return _refusal(malformed(str(error)))
        self._moves_alarm.set(self._moves.next_at())
        if isinstance(result, Waiting):
            return self._wait(result, client)
        return _answer(result)

    def _wait(self, waiting: Waiting, client: Client) -> Reply:
        def attempt(now: float) -> Answer | None:
            try:
                response = waiting.attempt(now)
            except AwsError as refusal:
                return _refusal(refusal)
            return None if response is None else _answer(response)

        polls = self._polls[waiting.queue]
        return polls.add(waiting, attempt, _answer(waiting.otherwise), client)

    def _attend(self, queue: Queue) -> None:
        for old in [old for old in self._polls if old.deleted and len(self._polls[old]) == 0]:
            self._polls.pop(old).close()
        self._polls[queue] = QueuePolls(queue, self._clock)

    def _run_moves(self) -> None:
        self._moves.run(self._clock.now())
        self._moves_alarm.set(self._moves.next_at())


def _answer(result: msgspec.Struct | None) -> Answer:
    body = b"" if result is None else _encode(result)
    return Answer(200, CONTENT_TYPE, body, (("x-amzn-requestid", new_id()),))


def _refusal(refusal: AwsError) -> Answer:
    headers = (
        ("x-amzn-requestid", new_id()),
        ("x-amzn-query-error", refusal.query_error()),
    )
    return Answer(refusal.status, CONTENT_TYPE, refusal.body(), headers)


def _region(request: Request) -> str:
    scope = _SCOPE.search(request.headers.get("authorization", ""))
    return DEFAULT_REGION if scope is None else scope[1]


def _base_url(request: Request) -> str:
    return f"http://{request.headers.get('host', 'localhost')}"


class _QueueNamed(msgspec.Struct, rename="pascal"):
    queue_url: str = ""
    queue_name: str = ""


def _target(request: Request, action: str) -> Target:
    """What the request is about, as far as it can be read."""
    try:
        named = msgspec.json.decode(request.body, type=_QueueNamed)
        name = queue_name(named.queue_url) or named.queue_name
    except (msgspec.MsgspecError, AwsError):
        name = ""
    return Target("sqs", action, _region(request), name or None)
