"""The SQS of a run: its address, and its process, whose CPU is nobody's but its own."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TypeAlias

import msgspec

from benchmarks.local_sqs import LocalSqs, QueueView
from benchmarks.processes import Processes
from outboxd.demo.aws import local_aws


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """A running server; `view` makes its view of a queue from the endpoint and the queue's name."""

    endpoint: str
    pid: int
    view: Callable[[str, str], QueueView]


ServerKind: TypeAlias = Callable[[Path], AbstractContextManager[Server]]
"""Starts one that writes its log to that file."""


@contextmanager
def localaws(log: Path) -> Iterator[Server]:
    """A local AWS while the block lasts."""
    before = Processes().children(os.getpid())
    with local_aws(log) as endpoint:
        (pid,) = Processes().children(os.getpid()) - before
        yield Server(endpoint=endpoint, pid=pid, view=LocalSqs)
