"""Has every process write the stacks of its threads to standard error, hung ones included."""

import faulthandler
import logging
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager

import anyio

from outboxd.core.clock import boottime
from outboxd.supervision.life import Life

log = logging.getLogger(__name__)

STANDARD_ERROR = 2

TOO_YOUNG_SECONDS = 2.0
"""Until a new process has said what is to happen at SIGUSR1, it would die of it."""


class StackDumps:
    """SIGUSR1 to the supervisor, or an order over the control socket, reaches all processes."""

    def __init__(self, lives: Callable[[], Sequence[Life]]) -> None:
        self._lives = lives

    @contextmanager
    def receiving(self, *signals: signal.Signals) -> Iterator[AsyncIterator[signal.Signals]]:
        """Receive these signals, SIGUSR1 among them, at which our own stacks are dumped even while
        the event loop is stuck; whoever receives it then passes it on."""
        # In this order: each of the two restores, when it ends, what it has found.
        faulthandler.unregister(signal.SIGUSR1)
        with anyio.open_signal_receiver(*signals) as received:
            faulthandler.register(signal.SIGUSR1, file=STANDARD_ERROR, all_threads=True, chain=True)
            try:
                yield received
            finally:
                faulthandler.unregister(signal.SIGUSR1)

    def dump(self) -> str:
        """Everybody's stacks; whose."""
        faulthandler.dump_traceback(file=STANDARD_ERROR, all_threads=True)
        return "stacks on standard error: " + ", ".join(["supervisor", *self.pass_on()])

    def pass_on(self) -> Sequence[str]:
        """Have the children dump theirs; which of them."""
        grown = boottime() - TOO_YOUNG_SECONDS
        reached: list[str] = []
        for life in self._lives():
            current = life.current
            if current is not None and (current.ready_at is not None or current.started_at < grown):
                current.process.signal(signal.SIGUSR1)
                reached.append(life.name)
        log.warning("stacks dumped to standard error", extra={"children": reached})
        return reached
