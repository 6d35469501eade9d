"""From exec to the first poll, and from a crash to the first poll of the successor."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import ClassVar

from benchmarks import subjects
from benchmarks.figures import Figures, Round
from benchmarks.local_sqs import LocalSqs
from benchmarks.peers.celery import THREADS as CELERY
from benchmarks.peers.peer import Peer
from benchmarks.place import QUEUE, Place
from benchmarks.subjects import Program
from benchmarks.trials import configurations as c
from benchmarks.trials.daemons import await_fact, daemon, kill_pool
from benchmarks.trials.trial import Stage
from outboxd.core.clock import boottime

NAME = "start"
OUTBOXD, FLOOR = "outboxd", "floor"

FIRST_POLL = "s from exec to first poll"
SUCCESSOR = "s from crash to first poll"

CALM_SECONDS = 1.0


class Start:
    """The server tells of polls as they arrive; the floor is bare boto3 in a process."""

    family: ClassVar[str] = NAME
    peers: ClassVar[tuple[Peer, ...]] = (CELERY,)

    def play(self, stage: Stage) -> list[Round]:
        played: list[Round] = []
        for _ in range(stage.extent.rounds):
            runs: Round = {}
            if stage.takes_part(OUTBOXD):
                runs[NAME, OUTBOXD] = _ours(stage)
            if stage.takes_part(FLOOR):
                runs[NAME, FLOOR] = _of(stage, lambda at: subjects.floor("consume", at, "1"))
            if stage.takes_part(CELERY.name):
                figures = stage.tried(CELERY.name, lambda: _of(stage, CELERY.start))
                if figures is not None:
                    runs[NAME, CELERY.name] = figures
            played.append(runs)
        return played


def _ours(stage: Stage) -> Figures:
    with (
        stage.grounds.place(c.head() + c.pool()) as place,
        LocalSqs(place.endpoint, QUEUE) as view,
    ):
        began = boottime()
        with daemon(place) as running:
            await_fact(lambda: _polls(view) > 0, "it polled", running)
            first = boottime() - began
            running.await_ready(lambda: False)
            time.sleep(CALM_SECONDS)
            # The victim's own poll lasts longer than all of this: the next one is its successor's.
            polls = _polls(view)
            killed = kill_pool(running)
            await_fact(lambda: _polls(view) > polls, "the successor polled", running)
            return {FIRST_POLL: first, SUCCESSOR: boottime() - killed}


def _of(stage: Stage, started: Callable[[Place], AbstractContextManager[Program]]) -> Figures:
    with (
        stage.grounds.place(c.head() + c.relay() + c.unread()) as place,
        LocalSqs(place.endpoint, QUEUE) as view,
    ):
        began = boottime()
        with started(place) as running:
            await_fact(lambda: _polls(view) > 0, "it polled", running)
            return {FIRST_POLL: boottime() - began}


def _polls(view: LocalSqs) -> int:
    return view.calls().get("ReceiveMessage", 0)
