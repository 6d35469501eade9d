"""A local AWS for a test: started, looked into, moved in time and made to fail."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import TypedDict

import msgspec

from outboxd.localaws.calls import CallCount
from outboxd.localaws.server import LOOPBACK
from outboxd.localaws.server import local_aws as serving
from outboxd.testing.control import ControlClient
from outboxd.testing.faults import FaultScript

REGION = "us-east-1"
_PLACEHOLDER = "test"


class QueueDepth(msgspec.Struct, frozen=True):
    """The exact numbers of a queue's messages; each message is in one of the three states."""

    name: str
    region: str
    arn: str
    fifo: bool
    visible: int
    in_flight: int
    delayed: int

    @property
    def total(self) -> int:
        return self.visible + self.in_flight + self.delayed


class ClientOptions(TypedDict):
    """What an AWS SDK has to be told; the credentials are checked by nobody."""

    endpoint_url: str
    region_name: str
    aws_access_key_id: str
    aws_secret_access_key: str


class LocalAws:
    """A running local AWS at `endpoint_url`: that of `local_aws()`, or of `outboxd localaws`."""

    def __init__(self, endpoint_url: str) -> None:
        self.endpoint_url = endpoint_url
        self.faults = FaultScript(endpoint_url)
        self._control = ControlClient(endpoint_url)

    @property
    def client_options(self) -> ClientOptions:
        """For `boto3.client("sqs", **aws.client_options)`."""
        return ClientOptions(
            endpoint_url=self.endpoint_url,
            region_name=REGION,
            aws_access_key_id=_PLACEHOLDER,
            aws_secret_access_key=_PLACEHOLDER,
        )

    @property
    def environment(self) -> dict[str, str]:
        """The same as environment variables, for processes."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint_url,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ACCESS_KEY_ID": _PLACEHOLDER,
            "AWS_SECRET_ACCESS_KEY": _PLACEHOLDER,
        }

    def advance(self, seconds: float) -> None:
        """Move its clock: visibility timeouts, delays, long polls and retention run out."""
        self._control.call("POST", "clock", {"advance_seconds": seconds})

    def queues(self) -> dict[str, QueueDepth]:
        """Every queue by its name, counted at this moment."""
        listed = self._control.call("GET", "queues")["queues"]
        return {queue["name"]: msgspec.convert(queue, QueueDepth) for queue in listed}

    def calls(self, operation: str = "*", queue: str = "*") -> int:
        """How many calls there were since the start or the last reset, by two globs.

        Calls count as they arrive, whatever becomes of them. Those that are about no queue, such as
        ListQueues, are among all queues only.
        """
        return sum(
            counted.count
            for counted in self.call_counts()
            if fnmatchcase(counted.operation, operation) and fnmatchcase(counted.queue or "", queue)
        )

    def call_counts(self) -> list[CallCount]:
        """The same numbers one by one: by operation, region and queue."""
        return msgspec.convert(self._control.call("GET", "calls")["calls"], list[CallCount])

    def reset_calls(self) -> None:
        """Count from zero."""
        self._control.call("DELETE", "calls")


@contextmanager
def local_aws(host: str = LOOPBACK, port: int = 0) -> Iterator[LocalAws]:
    """An AWS of one's own inside the `with`: empty at first, gone afterwards; port 0 is a free one.

    It runs in a thread of its own, so that the test may block. Raises OSError if it cannot listen.
    """
    started: Future[str] = Future()
    stopped: Future[None] = Future()
    thread = threading.Thread(
        target=lambda: asyncio.run(_serve(host, port, started, stopped)),
        name="outboxd local_aws",
        # A test run that is broken off must not wait for it.
        daemon=True,
    )
    thread.start()
    try:
        yield LocalAws(started.result())
    finally:
        stopped.set_result(None)
        thread.join()


async def _serve(host: str, port: int, started: Future[str], stopped: Future[None]) -> None:
    try:
        async with serving(host, port) as endpoint_url:
            started.set_result(endpoint_url)
            await asyncio.wrap_future(stopped)
    except OSError as error:
        started.set_exception(error)
