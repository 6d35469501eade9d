"""roto-aws: an SQS that is not ours, so that we are not tuned to our own."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.errors import BenchmarkError
from benchmarks.floor.client import sqs
from benchmarks.local_sqs import Depth
from benchmarks.server import Server

START_SECONDS = 20.0
LOOK_SECONDS = 0.1
"""Asking costs it time that grows with the depth, so it is not asked more often."""


class RotoSqs:
    """roto's view of one queue."""

    def __init__(self, endpoint: str, queue: str) -> None:
        self._name = queue
        self._client, self._url = sqs(endpoint, queue)
        self._looked = 0.0
        self._depth = Depth(queue, 0, 0, 0)

    def depth(self) -> Depth:
        if time.monotonic() - self._looked >= LOOK_SECONDS:
            attributes = self._client.get_queue_attributes(
                QueueUrl=self._url, AttributeNames=["All"]
            )["Attributes"]
            self._depth = Depth(
                self._name,
                int(attributes["ApproximateNumberOfMessages"]),
                int(attributes["ApproximateNumberOfMessagesNotVisible"]),
                int(attributes["ApproximateNumberOfMessagesDelayed"]),
            )
            self._looked = time.monotonic()
        return self._depth

    def calls(self) -> dict[str, int]:
        return {}

    def hold(self) -> None:
        """Its clock cannot be moved."""

    def release(self) -> None:
        """Nothing is held."""

    def __enter__(self) -> "RotoSqs":
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()


@contextmanager
def roto(log: Path) -> Iterator[Server]:
    """A roto server while the block lasts, with everything in memory."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    binary = Path(sys.executable).parent / "roto-server"
    with (
        log.open("ab") as output,
        subprocess.Popen(
            [binary, "--ephemeral", "--port", str(port)], stdout=output, stderr=output
        ) as process,
    ):
        try:
            _await(port, log)
            yield Server(endpoint=f"http://127.0.0.1:{port}", pid=process.pid, view=RotoSqs)
        finally:
            process.kill()


def _await(port: int, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            if time.monotonic() > deadline:
                raise BenchmarkError(f"roto-server does not start; {log} says why") from None
            time.sleep(0.05)
        else:
            return
