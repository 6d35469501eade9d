"""The live picture in a terminal."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from outboxd.demo.observation import Observation
from outboxd.demo.scene import Scene
from outboxd.demo.view import addresses

STATE_STYLES = {
    "ready": "green",
    "starting": "yellow",
    "draining": "yellow",
    "backoff": "magenta",
    "failed": "bold red",
}


class LivePicture:
    """Redraws the newest look in place."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._footer: list[str] = []

    def say(self, text: str) -> None:
        self._live.console.print(text)

    def opened(self, scene: Scene) -> None:
        self._footer = addresses(scene)

    def show(self, observation: Observation, kills: Mapping[str, int]) -> None:
        self._live.update(
            Group(
                _totals(observation, sum(kills.values())),
                _children(observation, kills),
                _queues(observation),
                _flows(observation),
                *(Text(line, style="dim") for line in self._footer),
                Text("Ctrl-C stops everything", style="dim"),
            ),
            refresh=True,
        )


@contextmanager
def picture(stream: TextIO) -> Iterator[LivePicture]:
    """A picture on the terminal while the block lasts; the last one stays."""
    console = Console(file=stream, highlight=False)
    with Live(console=console, auto_refresh=False, vertical_overflow="visible") as live:
        yield LivePicture(live)


def _totals(observation: Observation, kills: int) -> RenderableType:
    count, outbox = observation.count, observation.outbox
    done = count.effects_expected - count.effects_missing
    return Text.assemble(
        (f"{count.orders} orders", "bold"),
        f"   events {count.events_published}/{count.events_committed} published",
        f"   effects {done}/{count.effects_expected}",
        f"   outbox {outbox.backlog}, oldest {outbox.oldest_seconds:.1f} s",
        f"   kills {kills}",
        _bad(count.effects_duplicated, "   effects duplicated"),
        _bad(count.dead_letters, "   dead letters"),
    )


def _children(observation: Observation, kills: Mapping[str, int]) -> Table:
    table = _table("child", "state", "kills", "restarts", "memory")
    for child in observation.children:
        table.add_row(
            child.name,
            Text(child.state, style=STATE_STYLES.get(child.state, "")),
            str(kills.get(child.name, 0)),
            str(child.restarts),
            f"{child.rss_bytes / 1e6:.0f} MB",
        )
    return table


def _queues(observation: Observation) -> Table:
    table = _table("queue", "waiting", "in flight", "delayed", "dead letters")
    for name, depth in observation.queues.items():
        table.add_row(
            name,
            str(depth.visible),
            str(depth.in_flight),
            str(depth.delayed),
            str(observation.dead_letters[name].total),
        )
    return table


def _flows(observation: Observation) -> Table:
    table = _table("handler", "effects/s", "p50", "p99")
    for flow in observation.flows:
        table.add_row(
            flow.handler,
            f"{flow.rate:.1f}",
            f"{flow.p50_seconds * 1000:.0f} ms",
            f"{flow.p99_seconds * 1000:.0f} ms",
        )
    return table


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold cyan")
    table.add_column(first, min_width=28)
    for title in others:
        table.add_column(title, justify="right", min_width=10)
    return table


def _bad(number: int, what: str) -> Text:
    return Text(f"{what} {number}", style="bold red") if number > 0 else Text("")
