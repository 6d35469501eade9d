"""What a person sees of a running demo: a picture in a terminal, lines everywhere else."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, TextIO

from outboxd.demo.observation import Observation
from outboxd.demo.scene import Scene


class View(Protocol):
    """Shows what happens, to a person."""

    def say(self, text: str) -> None:
        """One fact, as a line."""

    def opened(self, scene: Scene) -> None:
        """The shop is open; where it can be looked at."""

    def show(self, observation: Observation, kills: Mapping[str, int]) -> None:
        """The newest look at everything."""


class LineView:
    """Lines on a stream: for logs and pipes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def say(self, text: str) -> None:
        print(text, file=self._stream, flush=True)

    def opened(self, scene: Scene) -> None:
        for line in addresses(scene):
            self.say(line)

    def show(self, observation: Observation, kills: Mapping[str, int]) -> None:
        count = observation.count
        done = count.effects_expected - count.effects_missing
        self.say(
            f"{count.orders} orders, {done}/{count.effects_expected} effects, "
            f"{count.outbox_backlog} in the outbox, {count.messages_left} in the queues, "
            f"{sum(kills.values())} kills, "
            f"{sum(child.restarts for child in observation.children)} restarts"
        )


def addresses(scene: Scene) -> list[str]:
    """Where the running daemon can be looked at."""
    base = f"http://{scene.supervisor.address}"
    return [
        f"metrics {base}/metrics  health {base}/healthz  readiness {base}/readyz",
        f"configuration {scene.configuration}",
    ]


@contextmanager
def viewing(stream: TextIO = sys.stderr) -> Iterator[View]:
    """The view that fits the stream, while the block lasts."""
    picture = _picture(stream) if stream.isatty() else None
    if picture is None:
        yield LineView(stream)
        return
    with picture as view:
        yield view


def _picture(stream: TextIO) -> AbstractContextManager[View] | None:
    try:
        from outboxd.demo.picture import picture
    except ImportError:  # rich comes with the extra `demo`; lines do without
        return None
    return picture(stream)
