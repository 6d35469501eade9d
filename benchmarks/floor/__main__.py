"""One floor as a process of its own, so that it is measured as the daemon is."""

import os
import signal
import sys
from collections.abc import Callable, Mapping

from benchmarks.floor.consume import consume, consume_once
from benchmarks.floor.relay import relay
from benchmarks.floor.row_by_row import row_by_row

FLOORS: Mapping[str, Callable[[str, str, int], None]] = {
    "relay": relay,
    "row by row": lambda dsn, queue, _: row_by_row(dsn, queue),
    "consume": lambda _, queue, threads: consume(queue, threads),
    "effect": lambda dsn, queue, _: consume_once(dsn, queue),
}


def main(name: str, threads: str = "1") -> None:
    """Do the work, and stay to be looked at."""
    FLOORS[name](os.environ["BENCHMARK_DSN"], os.environ["BENCHMARK_QUEUE"], int(threads))
    signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
