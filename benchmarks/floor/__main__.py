"""One floor as a process of its own, so that it is measured as the daemon is."""

import sys
from collections.abc import Callable, Mapping

from benchmarks.floor.consume import consume, consume_once
from benchmarks.floor.relay import relay

FLOORS: Mapping[str, Callable[[str, str, str], int]] = {
    "relay": relay,
    "consume": lambda _, endpoint, queue: consume(endpoint, queue),
    "consume, inbox": consume_once,
}


def main(name: str, dsn: str, endpoint: str, queue: str) -> None:
    """Do the work, say how many calls it took, and stay to be looked at until told to go."""
    print(FLOORS[name](dsn, endpoint, queue), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
