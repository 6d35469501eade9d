"""SIGKILL of a pool with sixteen messages in hand, until all of them have been handled again."""

from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import ClassVar

from benchmarks.errors import BenchmarkError
from benchmarks.figures import Figures, Round
from benchmarks.filling import fill_queue
from benchmarks.peers.celery import PACKAGES
from benchmarks.peers.peer import Peer
from benchmarks.place import QUEUE
from benchmarks.trials import configurations as c
from benchmarks.trials.daemons import await_fact, kill_pool, ready_daemon
from benchmarks.trials.notes import BEGAN, ENDED, handled_after, notes
from benchmarks.trials.trial import Stage
from outboxd.core.clock import boottime
from outboxd.demo.private_folder import private_folder

NAME = "recovery"
IN_FLIGHT = 16
LONG_SECONDS, SHORT_SECONDS = 3.0, 0.25

OUTBOXD = f"outboxd, {LONG_SECONDS:g} s handlers"
OUTBOXD_SHORT = f"outboxd, {SHORT_SECONDS:g} s handlers"

FIRST_AGAIN = "s to the first again"
ALL_AGAIN = "s to all handled again"
UNATTENDED = "s with none in hand"
KILLED = "in flight when killed"

LIMIT_SECONDS = 75.0
PEER_LIMIT_SECONDS = 45.0

CELERY = Peer(
    name=f"celery, 16 threads, {LONG_SECONDS:g} s handlers",
    packages=PACKAGES,
    producer=("celery_recovery_app.py", "enqueue"),
    work=("celery_recovery_app.py", "work", str(IN_FLIGHT), str(LONG_SECONDS)),
)


class Recovery:
    """Whoever started the pool starts it again: the supervisor ours, a stand-in for systemd the
    peer, at once."""

    family: ClassVar[str] = NAME
    peers: ClassVar[tuple[Peer, ...]] = (CELERY,)

    def play(self, stage: Stage) -> list[Round]:
        """One round: what is measured is made of time-outs, which do not scatter."""
        runs: Round = {}
        if stage.takes_part(OUTBOXD_SHORT):
            runs[NAME, OUTBOXD_SHORT] = _ours(stage, SHORT_SECONDS)
        with ThreadPoolExecutor(1) as beside:
            # Both do nothing but wait for most of the time, so they can do it side by side.
            theirs = _started(stage, beside)
            if stage.takes_part(OUTBOXD):
                runs[NAME, OUTBOXD] = _ours(stage, LONG_SECONDS)
            figures = theirs.result()
        if figures is not None:
            runs[NAME, CELERY.name] = figures
        return [runs]


def _started(stage: Stage, beside: Executor) -> "Future[Figures | None]":
    """The peer's run, once it starts no process any more, from which a place tells its server."""
    if not stage.takes_part(CELERY.name):
        return beside.submit(lambda: None)
    there = Event()

    def run() -> Figures | None:
        try:
            return stage.tried(CELERY.name, lambda: _celerys(stage, there))
        finally:
            there.set()

    future = beside.submit(run)
    there.wait()
    return future


def _ours(stage: Stage, seconds: float) -> Figures:
    with _notes() as path:
        configuration = c.head() + c.pool(notes=str(path), seconds=seconds, concurrency=IN_FLIGHT)
        with stage.grounds.place(configuration) as place, ready_daemon(place) as daemon:
            fill_queue(place.endpoint, QUEUE, IN_FLIGHT)
            await_fact(lambda: _all_began(path), "all began", daemon)
            killed = kill_pool(daemon)
            numbers = _in_hand(path, killed)
            await_fact(
                lambda: handled_after(notes(path), killed, numbers) is not None,
                "all were handled again",
                daemon,
                LIMIT_SECONDS,
            )
            return _figures(path, killed, numbers)


def _celerys(stage: Stage, there: Event) -> Figures:
    with _notes() as path, stage.grounds.place(c.head() + c.relay() + c.unread()) as place:
        CELERY.fill(place, IN_FLIGHT)
        with CELERY.start(place, BENCHMARK_NOTES=str(path)) as worker:
            await_fact(lambda: _all_began(path), "all began", worker)
            killed = boottime()
        numbers = _in_hand(path, killed)
        with CELERY.start(place, BENCHMARK_NOTES=str(path)) as worker:
            there.set()  # from here on it starts no process any more
            await_fact(
                lambda: handled_after(notes(path), killed, numbers) is not None,
                "all were handled again",
                worker,
                PEER_LIMIT_SECONDS,
            )
        return _figures(path, killed, numbers)


@contextmanager
def _notes() -> Iterator[Path]:
    with private_folder("outboxd-notes-") as folder:
        yield folder / "notes"


def _all_began(path: Path) -> bool:
    return len({note.number for note in notes(path) if note.what == BEGAN}) == IN_FLIGHT


def _in_hand(path: Path, killed: float) -> set[int]:
    noted = [note for note in notes(path) if note.at <= killed]
    ended = {note.number for note in noted if note.what == ENDED}
    return {note.number for note in noted if note.what == BEGAN} - ended


def _figures(path: Path, killed: float, numbers: set[int]) -> Figures:
    handled = handled_after(notes(path), killed, numbers)
    if handled is None or not numbers:
        raise BenchmarkError("nothing was in hand when the pool was killed")
    return {
        FIRST_AGAIN: handled.first_began,
        UNATTENDED: handled.unattended,
        ALL_AGAIN: handled.last_ended,
        KILLED: float(len(numbers)),
    }
