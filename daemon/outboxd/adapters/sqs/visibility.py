"""Changes the visibility timeouts of messages, each call in a thread of its own."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from anyio import CapacityLimiter, to_thread

from outboxd.adapters.aws.outages import AWS_ERRORS, kind_of_code, outage
from outboxd.adapters.sqs.client import sqs_client
from outboxd.core.settings import Settings
from outboxd.ports.visibility import Extended, Failed, Lost, Timeout, TimeoutResult

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

SHORTEST_READ_TIMEOUT_SECONDS = 1.0

_UNCONFIRMED = "unconfirmed"


def extender_visibility(settings: Settings, calls_per_queue: int) -> "SqsVisibility":
    """The visibility of all configured queues, with a thread and a connection for every call.

    A call is a single attempt, and hangs for a quarter of the shortest timeout at the most, which
    is half of what is left when an extension is due: so there is time for another one.
    """
    shortest = min((queue.visibility_seconds for queue in settings.queues.values()), default=30)
    read_timeout = max(SHORTEST_READ_TIMEOUT_SECONDS, shortest / 4)
    aws = msgspec.structs.replace(
        settings.aws,
        connect_timeout_seconds=min(settings.aws.connect_timeout_seconds, read_timeout),
        read_timeout_seconds=min(settings.aws.read_timeout_seconds, read_timeout),
    )
    threads = calls_per_queue * max(1, len(settings.queues))
    client = sqs_client(aws, connections=threads, attempts=1)
    names = {queue: settings.sqs_queue_name(queue) for queue in settings.queues}
    return SqsVisibility(client, names, threads)


class SqsVisibility:
    """Keeps `ports.visibility.Visibility`; `names` are the queues' names in SQS, by configured
    name. A queue's URL is looked up before its first call."""

    def __init__(self, client: "SQSClient", names: Mapping[str, str], threads: int) -> None:
        self._client = client
        self._names = names
        self._urls: dict[str, str] = {}
        # Its own, since anyio's shared one would let a hanging queue use up the threads of all.
        self._threads = CapacityLimiter(threads)

    async def change(self, queue: str, timeouts: Sequence[Timeout]) -> Sequence[TimeoutResult]:
        return await to_thread.run_sync(
            self._change, queue, timeouts, abandon_on_cancel=True, limiter=self._threads
        )

    def close(self) -> None:
        """Let go of the connections."""
        self._client.close()

    def _change(self, queue: str, timeouts: Sequence[Timeout]) -> list[TimeoutResult]:
        try:
            answer = self._client.change_message_visibility_batch(
                QueueUrl=self._url(queue),
                # Positions, not message ids: a message may be in a batch twice, an id may not.
                Entries=[
                    {
                        "Id": str(index),
                        "ReceiptHandle": timeout.receipt_handle,
                        "VisibilityTimeout": timeout.seconds,
                    }
                    for index, timeout in enumerate(timeouts)
                ],
            )
        except AWS_ERRORS as error:
            raise outage(error, f"change the visibility of messages of queue {queue}") from error
        return _results(answer, len(timeouts))

    def _url(self, queue: str) -> str:
        """Two threads may look up the same queue; both find the same."""
        url = self._urls.get(queue)
        if url is None:
            # A ledger may tell of a queue that the newest configuration no longer has.
            name = self._names.get(queue, queue)
            url = self._urls[queue] = self._client.get_queue_url(QueueName=name)["QueueUrl"]
        return url


def _results(answer: Mapping[str, Any], entries: int) -> list[TimeoutResult]:
    confirmed = {entry["Id"] for entry in answer.get("Successful", ())}
    failed = {entry["Id"]: entry for entry in answer.get("Failed", ())}
    return [_result(str(index), confirmed, failed) for index in range(entries)]


def _result(id_: str, confirmed: set[str], failed: Mapping[str, Any]) -> TimeoutResult:
    """An entry is extended only if SQS says so. A fault of the sender's is a receipt that is not
    ours: there is nothing else in an entry that could be wrong. A throttle is never the end."""
    if (failure := failed.get(id_)) is not None:
        code = failure["Code"]
        permanent = bool(failure["SenderFault"]) and kind_of_code(code) is None
        return Lost(code) if permanent else Failed(code)
    return Extended() if id_ in confirmed else Failed(_UNCONFIRMED)
