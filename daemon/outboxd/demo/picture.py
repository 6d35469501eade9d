"""The live picture in a terminal, which fits one of 80 columns and 24 rows, and uses more."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from outboxd.demo.killer import Kills
from outboxd.demo.observation import Observation
from outboxd.demo.scene import Scene
from outboxd.demo.tables import children_table, flows_table
from outboxd.demo.view import TITLE, addresses, awaited
from outboxd.demo.wording import counted

END = "Ctrl-C ends it all. Kill a pid by hand, and see that nothing gets lost."

ROOMY_ROWS = 32
"""A terminal that has so many has room for empty lines and addresses."""


class LivePicture:
    """Redraws the newest look in place."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._addresses: list[str] = []

    def say(self, text: str) -> None:
        self._live.console.print(text)

    def opened(self, scene: Scene) -> None:
        self._addresses = addresses(scene)

    def show(self, observation: Observation, kills: Kills | None) -> None:
        roomy = self._live.console.height >= ROOMY_ROWS
        between = [""] if roomy else []
        footer = self._addresses if roomy else []
        self._live.update(
            Group(
                *([Text(TITLE, style="bold")] if roomy else []),
                _facts(*_progress(observation)),
                *between,
                children_table(observation, kills),
                *between,
                flows_table(observation),
                *between,
                *(Text(text, style="dim") for text in footer),
                _end(kills),
            ),
            refresh=True,
        )


@contextmanager
def picture(stream: TextIO) -> Iterator[LivePicture]:
    """A picture on the terminal while the block lasts; the last one stays."""
    console = Console(file=stream, highlight=False)
    # Cropped, because what is taller than the terminal cannot be redrawn in place.
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        yield LivePicture(live)


def _progress(observation: Observation) -> list[str | Text]:
    count, outbox = observation.count, observation.outbox
    done = count.effects_expected - count.effects_missing
    return [
        counted(count.orders, "order"),
        f"events {count.events_published}/{count.events_committed}",
        f"effects {done}/{count.effects_expected}",
        f"outbox {outbox.backlog} ({outbox.oldest_seconds:.1f} s)",
        _bad(count.effects_duplicated, "duplicates"),
        _bad(count.dead_letters, "dead letters"),
    ]


def _end(kills: Kills | None) -> Text:
    """How it ends: by hand, or when the killer has had enough."""
    text = awaited(kills)
    return _facts(Text(text, style="magenta")) if text else Text(END, style="dim")


def _facts(*facts: str | Text) -> Text:
    """One line of those that are not empty: a second one would have no room."""
    told = [Text.assemble(fact) for fact in facts if fact]
    return Text("   ", no_wrap=True, overflow="ellipsis").join(told)


def _bad(number: int, what: str) -> Text:
    return Text(f"{what} {number}", style="bold red") if number > 0 else Text("")
