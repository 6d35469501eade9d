"""A consumer's queue and its dead-letter queue, through two threads: one receives, one settles.

Two, because a long poll must not hold up a delete; no more, because boto3 gets slower with each.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from outboxd.adapters.aws.outages import AWS_ERRORS, kind_of_code, outage
from outboxd.adapters.crew import Crew
from outboxd.adapters.sqs.client import sqs_client
from outboxd.adapters.sqs.receive_attempts import ReceiveAttempts
from outboxd.adapters.sqs.received import letter_entry, received
from outboxd.core.clock import boottime
from outboxd.core.errors import Unavailable
from outboxd.core.letters import MAX_MESSAGE_BYTES, Letter, letter_bytes
from outboxd.core.messages import ReceivedMessage
from outboxd.core.settings import Settings, is_fifo
from outboxd.ports.queue import BATCH, Depth, Hiding, Refusal

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient
    from types_boto3_sqs.literals import MessageSystemAttributeNameType
    from types_boto3_sqs.type_defs import ReceiveMessageRequestTypeDef

T = TypeVar("T")

CallObserver: TypeAlias = Callable[[str, str, float], None]
"""Told of every call: the operation, "ok" or the OutageKind, and how many seconds it took."""

_TOLD: "list[MessageSystemAttributeNameType]" = [
    "ApproximateReceiveCount",
    "SentTimestamp",
    "MessageGroupId",
    "AWSTraceHeader",
]
_TOLD_OF_LETTERS: "list[MessageSystemAttributeNameType]" = ["DeadLetterQueueSourceArn"]

_UNCONFIRMED = "unconfirmed"


def _nobody(operation: str, result: str, seconds: float) -> None:
    return


def consumer_queue(settings: Settings, queue: str, observe: CallObserver = _nobody) -> "SqsQueue":
    """The configured queue `queue` and its dead-letter queue, on clients of their own.

    Calls are single attempts: a receive that the SDK repeats hides the messages of the first one,
    and the consumer retries and times its calls by itself.
    """
    wait = settings.queues[queue].wait_seconds
    return SqsQueue(
        sqs_client(settings.aws, connections=1, wait_seconds=wait, attempts=1),
        sqs_client(settings.aws, connections=1, attempts=1),
        settings.sqs_queue_name(queue),
        settings.dead_letter_name(queue),
        settings.queues[queue].visibility_seconds,
        observe,
    )


class SqsQueue:
    """Keeps `ports.queue.Queue`; queues are looked up by name, each before its first call."""

    def __init__(
        self,
        receiving: "SQSClient",
        settling: "SQSClient",
        name: str,
        dead_letter_name: str,
        visibility_seconds: int,
        observe: CallObserver = _nobody,
        *,
        of_dead_letters: bool = False,
    ) -> None:
        """`of_dead_letters` has a receive ask where SQS has moved a message from as well."""
        self._receiving = receiving
        self._settling = settling
        self._name = name
        self._dead_letter_name = dead_letter_name
        self._visibility = visibility_seconds
        self._observe = observe
        self._told = [*_TOLD, *_TOLD_OF_LETTERS] if of_dead_letters else _TOLD
        self._attempts = ReceiveAttempts() if is_fifo(name) else None
        self._urls: dict[str, str] = {}
        # Of one thread each: a receive that waits must not keep a delete waiting.
        self._receivers = Crew(1, "receive")
        self._settlers = Crew(1, "settle")

    async def receive(self, limit: int, wait_seconds: int) -> Sequence[ReceivedMessage]:
        return await self._receivers.run(lambda: self._receive(limit, wait_seconds))

    async def delete(self, receipt_handles: Sequence[str]) -> Sequence[Refusal]:
        return await self._settlers.run(lambda: self._delete(receipt_handles))

    async def hide(self, hidings: Sequence[Hiding]) -> Sequence[Refusal]:
        return await self._settlers.run(lambda: self._hide(hidings))

    async def bury(self, letters: Sequence[Letter]) -> Sequence[Refusal]:
        return await self._settlers.run(lambda: self._bury(letters))

    async def depth(self) -> Depth:
        return await self._settlers.run(self._depth)

    def close(self) -> None:
        """Let go of the connections."""
        self._receiving.close()
        self._settling.close()

    def _receive(self, limit: int, wait_seconds: int) -> list[ReceivedMessage]:
        request: ReceiveMessageRequestTypeDef = {
            "QueueUrl": self._url(self._receiving, self._name),
            "MaxNumberOfMessages": limit,
            "WaitTimeSeconds": wait_seconds,
            "VisibilityTimeout": self._visibility,
            "MessageSystemAttributeNames": self._told,
            "MessageAttributeNames": ["All"],
        }
        if self._attempts is not None:
            request["ReceiveRequestAttemptId"] = self._attempts.begin(limit)
        answer = self._call(
            "receive", self._name, lambda: self._receiving.receive_message(**request)
        )
        if self._attempts is not None:
            self._attempts.answered()
        return [received(message) for message in answer.get("Messages", ())]

    def _delete(self, receipt_handles: Sequence[str]) -> list[Refusal]:
        url = self._url(self._settling, self._name)
        answer = self._call(
            "delete",
            self._name,
            lambda: self._settling.delete_message_batch(
                QueueUrl=url,
                Entries=[
                    {"Id": str(index), "ReceiptHandle": handle}
                    for index, handle in enumerate(receipt_handles)
                ],
            ),
        )
        return list(_refusals(answer, len(receipt_handles)))

    def _hide(self, hidings: Sequence[Hiding]) -> list[Refusal]:
        url = self._url(self._settling, self._name)
        answer = self._call(
            "extend",
            self._name,
            lambda: self._settling.change_message_visibility_batch(
                QueueUrl=url,
                Entries=[
                    {
                        "Id": str(index),
                        "ReceiptHandle": hiding.receipt_handle,
                        "VisibilityTimeout": hiding.seconds,
                    }
                    for index, hiding in enumerate(hidings)
                ],
            ),
        )
        return list(_refusals(answer, len(hidings)))

    def _bury(self, letters: Sequence[Letter]) -> list[Refusal]:
        refusals: list[Refusal] = []
        for start, pack in _packs(letters):
            try:
                found = self._send(pack)
            except Unavailable as error:
                if start == 0:
                    raise
                # The packs before this one are accepted: the call as a whole has not failed.
                found = [
                    Refusal(index, error.kind.value, str(error), permanent=False)
                    for index in range(len(pack))
                ]
            refusals += [Refusal(start + r.index, r.code, r.message, r.permanent) for r in found]
        return refusals

    def _send(self, pack: Sequence[Letter]) -> list[Refusal]:
        url = self._url(self._settling, self._dead_letter_name)
        answer = self._call(
            "send",
            self._dead_letter_name,
            lambda: self._settling.send_message_batch(
                QueueUrl=url,
                Entries=[letter_entry(index, letter) for index, letter in enumerate(pack)],
            ),
        )
        return list(_refusals(answer, len(pack)))

    def _depth(self) -> Depth:
        counts = self._counts(self._name)
        try:
            dead_letters = self._counts(self._dead_letter_name)["ApproximateNumberOfMessages"]
        except Unavailable:
            dead_letters = None
        return Depth(
            visible=counts["ApproximateNumberOfMessages"],
            in_flight=counts["ApproximateNumberOfMessagesNotVisible"],
            delayed=counts["ApproximateNumberOfMessagesDelayed"],
            dead_letters=dead_letters,
        )

    def _counts(self, name: str) -> dict[str, int]:
        url = self._url(self._settling, name)
        answer = self._call(
            "attributes",
            name,
            lambda: self._settling.get_queue_attributes(
                QueueUrl=url,
                AttributeNames=[
                    "ApproximateNumberOfMessages",
                    "ApproximateNumberOfMessagesNotVisible",
                    "ApproximateNumberOfMessagesDelayed",
                ],
            ),
        )
        return {key: int(value) for key, value in answer["Attributes"].items()}

    def _url(self, client: "SQSClient", name: str) -> str:
        """Two threads may look up the same queue; both find the same."""
        url = self._urls.get(name)
        if url is None:
            answer = self._call("lookup", name, lambda: client.get_queue_url(QueueName=name))
            url = self._urls[name] = answer["QueueUrl"]
        return url

    def _call(self, operation: str, name: str, call: Callable[[], T]) -> T:
        started = boottime()
        try:
            answer = call()
        except AWS_ERRORS as error:
            unavailable = outage(error, f"{operation} on queue {name}")
            self._observe(operation, unavailable.kind.value, boottime() - started)
            raise unavailable from error
        self._observe(operation, "ok", boottime() - started)
        return answer


def _packs(letters: Sequence[Letter]) -> Iterator[tuple[int, Sequence[Letter]]]:
    """Runs of letters that fit into one call, each with the position of its first."""
    start = 0
    size = 0
    for index, letter in enumerate(letters):
        own = letter_bytes(letter)
        if index > start and (size + own > MAX_MESSAGE_BYTES or index - start == BATCH):
            yield start, letters[start:index]
            start, size = index, 0
        size += own
    if letters:
        yield start, letters[start:]


def _refusals(answer: Mapping[str, Any], entries: int) -> Iterator[Refusal]:
    """Every entry that is not confirmed: those that failed, and those of which nothing is said."""
    confirmed = {entry["Id"] for entry in answer.get("Successful", ())}
    failed = {entry["Id"]: entry for entry in answer.get("Failed", ())}
    for index in range(entries):
        failure = failed.get(str(index))
        if failure is not None:
            code = failure["Code"]
            permanent = bool(failure["SenderFault"]) and kind_of_code(code) is None
            yield Refusal(index, code, failure.get("Message", ""), permanent)
        elif str(index) not in confirmed:
            yield Refusal(index, _UNCONFIRMED, "SQS said nothing about this entry", permanent=False)
