"""What daemons use that have nothing to do."""

import time
from collections.abc import Hashable, Mapping, Sequence
from contextlib import closing
from typing import TypeVar

import msgspec
import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from benchmarks.errors import BenchmarkError
from benchmarks.figures import Figures
from benchmarks.local_sqs import LocalSqs
from benchmarks.place import QUEUE, Place
from benchmarks.processes import Processes, memory
from outboxd.demo.supervisor import Supervisor

Key = TypeVar("Key", bound=Hashable)

MEMORY = "PSS MB"
PROCESSES = "processes"
IDLE_CPU = "idle CPU % of a core"
IDLE_CALLS = "idle API calls a minute"
IDLE_STATEMENTS = "idle SQL a minute"

TRANSACTIONS = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = %s"


class Idlers:
    """Daemons that share a place."""

    def __init__(self, place: Place, daemons: Sequence[Supervisor]) -> None:
        self.place = place
        self.daemons = daemons

    def cpu_seconds(self) -> dict[int, float]:
        """By process. Raises BenchmarkError if a daemon has ended."""
        processes = Processes()
        found: dict[int, float] = {}
        for daemon in self.daemons:
            if (words := daemon.last_words()) is not None:
                raise BenchmarkError(words)
            found |= processes.cpu_seconds(daemon.pid)
        return found


class _Look(msgspec.Struct, frozen=True):
    at: float
    cpu_seconds: float
    calls: int
    transactions: int


def size(idlers: Idlers) -> Figures:
    """How large they are."""
    found = memory(idlers.cpu_seconds())
    return {PROCESSES: float(len(found)), MEMORY: sum(each.pss for each in found.values())}


def idle(groups: Mapping[Key, Idlers], seconds: float) -> dict[Key, Figures]:
    """What each group uses in so many seconds.

    SQL is counted in transactions; each statement of a daemon without work is one. A session tells
    the server of them once a second, so the count is right within a second's.
    """
    before = {key: _look(idlers) for key, idlers in groups.items()}
    time.sleep(seconds)
    return {key: _between(before[key], _look(idlers)) for key, idlers in groups.items()}


def _between(before: _Look, after: _Look) -> Figures:
    seconds = after.at - before.at
    return {
        IDLE_CPU: 100 * (after.cpu_seconds - before.cpu_seconds) / seconds,
        IDLE_CALLS: 60 * (after.calls - before.calls) / seconds,
        IDLE_STATEMENTS: 60 * (after.transactions - before.transactions) / seconds,
    }


def _look(idlers: Idlers) -> _Look:
    dsn = idlers.place.dsn
    # From another database, so that asking is not counted.
    elsewhere = make_conninfo(dsn, dbname="postgres")
    with (
        closing(psycopg.connect(elsewhere, autocommit=True)) as connection,
        LocalSqs(idlers.place.endpoint, QUEUE) as view,
    ):
        name = conninfo_to_dict(dsn)["dbname"]
        ((transactions,),) = connection.execute(TRANSACTIONS, [name]).fetchall()
        return _Look(
            time.monotonic(),
            sum(idlers.cpu_seconds().values()),
            view.calls_of_all(),
            int(transactions),
        )
