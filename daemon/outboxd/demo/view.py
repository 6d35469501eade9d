"""What a person sees of a running demo: a picture in a terminal, lines everywhere else."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, TextIO

from outboxd.demo.killer import Kills
from outboxd.demo.observation import Observation
from outboxd.demo.scene import Scene
from outboxd.demo.wording import counted

TITLE = "A skincare shop: orders are reserved, paid, shipped, invoiced and told of."


class View(Protocol):
    """Shows what happens, to a person."""

    def say(self, text: str) -> None:
        """One fact, as a line."""

    def opened(self, scene: Scene) -> None:
        """The shop is open; where it can be looked at."""

    def show(self, observation: Observation, kills: Kills | None) -> None:
        """The newest look at everything; `kills` is None when the demo kills nobody."""


class LineView:
    """Lines on a stream: for logs and pipes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._counted_at: float | None = None

    def say(self, text: str) -> None:
        print(text, file=self._stream, flush=True)

    def opened(self, scene: Scene) -> None:
        for line in (TITLE, *addresses(scene)):
            self.say(line)

    def show(self, observation: Observation, kills: Kills | None) -> None:
        """A line for every new count."""
        if observation.at != self._counted_at:
            self._counted_at = observation.at
            self.say(_line(observation, kills))


def _line(observation: Observation, kills: Kills | None) -> str:
    count = observation.count
    done = count.effects_expected - count.effects_missing
    facts = [
        counted(count.orders, "order"),
        f"{done}/{count.effects_expected} effects",
        f"{count.outbox_backlog} in the outbox",
        f"{count.messages_left} in the queues",
        *([counted(kills.total, "kill")] if kills is not None else []),
        counted(sum(child.restarts for child in observation.children), "restart"),
    ]
    return ", ".join(facts) + (f"; {awaited(kills)}" if awaited(kills) else "")


def awaited(kills: Kills | None) -> str:
    """Why a run whose work is done does not end yet, if it is for the killer."""
    if kills is None or not kills.awaited:
        return ""
    return f"all work is done; still to be killed once: {', '.join(kills.awaited)}"


def addresses(scene: Scene) -> list[str]:
    """Where the running daemon can be looked at."""
    return [
        f"look at       http://{scene.supervisor.address}/  /metrics  /healthz?verbose  /readyz",
        f"configuration {scene.configuration}",
        f"log           {scene.log}",
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
