"""Message move tasks: dead letters back to where they came from, at a rate."""

import json
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Callable
from enum import Enum
from math import floor

import msgspec

from outboxd.localaws.ids import new_id
from outboxd.localaws.sqs.errors import invalid_parameter, resource_not_found
from outboxd.localaws.sqs.message import Message
from outboxd.localaws.sqs.queue import Queue
from outboxd.localaws.sqs.registry import Registry

KEPT_TASKS = 10
# Messages a task without a rate moves before others get their turn (well under 10 ms).
STRIDE = 500

_NO_QUEUE = "AWS.SimpleQueueService.NonExistentQueue"


class Status(Enum):
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    CANCELLED = "CANCELLED"
    FAILED = "FAILED"


class MoveTask(msgspec.Struct, kw_only=True):
    """One redrive; `rate` is messages per second, None for as fast as it goes."""

    id: str
    source: Queue
    destination_arn: str | None
    rate: int | None
    started_at: float
    to_move: int
    moved: int = 0
    status: Status = Status.RUNNING
    failure: str | None = None

    @property
    def handle(self) -> str:
        content = {"taskId": self.id, "sourceArn": self.source.identity.arn}
        return b64encode(json.dumps(content).encode()).decode()

    def next_at(self) -> float:
        """When the next message is due."""
        if self.rate is None:
            return self.started_at
        return self.started_at + (self.moved + 1) / self.rate

    def allowance(self, now: float) -> int:
        """How many messages may move at this moment."""
        left = self.to_move - self.moved
        if self.rate is None:
            return min(left, STRIDE)
        return min(left, floor((now - self.started_at) * self.rate) - self.moved)


class MoveTasks:
    """Runs the tasks; the owner calls `run` when `next_at` has come."""

    def __init__(self, registry: Registry, new_id: Callable[[], str] = new_id) -> None:
        self._registry = registry
        self._new_id = new_id
        self._tasks: dict[str, deque[MoveTask]] = {}
        self._running: dict[str, MoveTask] = {}

    def start(
        self, source: Queue, destination_arn: str | None, rate: int | None, now: float
    ) -> MoveTask:
        """Raises InvalidParameterValue while another task of this source is running."""
        arn = source.identity.arn
        if arn in self._running:
            raise invalid_parameter(
                "There is already a task running. "
                "Only one active task is allowed for a source queue arn at a given time."
            )
        task = MoveTask(
            id=self._new_id(),
            source=source,
            destination_arn=destination_arn,
            rate=rate,
            started_at=now,
            to_move=source.depth(now).visible,
        )
        self._tasks.setdefault(arn, deque(maxlen=KEPT_TASKS)).appendleft(task)
        self._running[arn] = task
        return task

    def recent(self, source_arn: str, limit: int) -> list[MoveTask]:
        """The latest tasks of this source, newest first."""
        return list(self._tasks.get(source_arn, ()))[:limit]

    def cancel(self, handle: str) -> MoveTask:
        """Stop a running task. Raises AwsError for a task that is unknown or not running."""
        task_id, source_arn = _opened(handle)
        if self._registry.find_arn(source_arn) is None:
            raise resource_not_found(
                "The resource that you specified for the SourceArn parameter doesn't exist."
            )
        task = next((t for t in self._tasks.get(source_arn, ()) if t.id == task_id), None)
        if task is None:
            raise resource_not_found("Task does not exist.")
        if task.status is not Status.RUNNING:
            raise resource_not_found("Only active tasks can be cancelled.")
        self._end(task, Status.CANCELLED)
        return task

    def next_at(self) -> float | None:
        """When some task has something to move, None while none is running."""
        return min((task.next_at() for task in self._running.values()), default=None)

    def run(self, now: float) -> None:
        """Move what is due."""
        for task in tuple(self._running.values()):
            self._run_one(task, now)

    def _run_one(self, task: MoveTask, now: float) -> None:
        if task.source.deleted:
            self._end(task, Status.FAILED, failure=_NO_QUEUE)
            return
        allowed = max(0, task.allowance(now))
        letters = task.source.peek(allowed, now)
        for letter in letters:
            destination = self._destination(task, letter)
            if isinstance(destination, str):
                self._end(task, Status.FAILED, failure=destination)
                return
            task.source.withdraw(letter)
            destination.put(self._renewed(letter, destination, now), 0, now)
            task.moved += 1
        if task.moved >= task.to_move or len(letters) < allowed:
            self._end(task, Status.COMPLETED)

    def _destination(self, task: MoveTask, letter: Message) -> Queue | str:
        """Where this letter goes, or why it cannot go there."""
        arn = task.destination_arn or letter.dead_letter_source
        if arn is None:
            return "CouldNotDetermineMessageSource"
        return self._registry.find_arn(arn) or _NO_QUEUE

    def _renewed(self, letter: Message, destination: Queue, now: float) -> Message:
        """A redriven message is a new one: its id, age and receive count start again."""
        return msgspec.structs.replace(
            letter,
            id=self._new_id(),
            sequence=self._registry.next_sequence() if destination.settings.fifo else None,
            sent_at=now,
            retained_since=now,
            receives=0,
            first_received_at=None,
            dead_letter_source=None,
            copied=False,
        )

    def _end(self, task: MoveTask, status: Status, failure: str | None = None) -> None:
        task.status = status
        task.failure = failure
        self._running.pop(task.source.identity.arn, None)


def _opened(handle: str) -> tuple[str, str]:
    try:
        content = json.loads(b64decode(handle, validate=True))
        return str(content["taskId"]), str(content["sourceArn"])
    except (ValueError, KeyError, TypeError):
        raise invalid_parameter("Value for parameter TaskHandle is invalid.") from None
