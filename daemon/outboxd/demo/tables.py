"""The tables of the live picture: processes, queues, handlers."""

from rich.table import Table
from rich.text import Text

from outboxd.demo.killer import Kills
from outboxd.demo.metrics import ChildView
from outboxd.demo.observation import Observation

STATE_STYLES = {
    "ready": "green",
    "starting": "yellow",
    "draining": "yellow",
    "backoff": "magenta",
    "failed": "bold red",
}

UNKNOWN = "-"

FEW_COLUMNS = 4


def children_table(observation: Observation, kills: Kills | None) -> Table:
    """Every child; its kills only when it is the demo that kills, for it knows of no others."""
    kill_titles = ["killed by demo"] if kills is not None else []
    table = _table("child", "pid", "state", *kill_titles, "restarts", "memory")
    for child in observation.children:
        table.add_row(
            child.name,
            UNKNOWN if child.pid is None else str(child.pid),
            Text(child.state, style=STATE_STYLES.get(child.state, "")),
            *([str(kills.by_role.get(child.name, 0))] if kills is not None else []),
            str(child.restarts),
            _memory(child),
        )
    return table


def queues_table(observation: Observation) -> Table:
    """What each queue holds, and its dead-letter queue."""
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


def flows_table(observation: Observation) -> Table:
    """How fast each handler works, from the commit of the event to the effect."""
    table = _table("handler", "effects/s", "p50", "p99")
    for flow in observation.flows:
        table.add_row(
            flow.handler,
            f"{flow.rate:.1f}",
            f"{flow.p50_seconds * 1000:.0f} ms",
            f"{flow.p99_seconds * 1000:.0f} ms",
        )
    return table


def _memory(child: ChildView) -> str:
    """As the child told last; of one that is not there (yet), that would be its predecessor's."""
    if child.rss_bytes == 0 or child.state not in ("ready", "draining"):
        return UNKNOWN
    return f"{child.rss_bytes / 1e6:.0f} MB"


def _table(first: str, *others: str) -> Table:
    """With columns below those of the other tables, as long as 80 characters are enough."""
    roomy = len(others) <= FEW_COLUMNS
    table = Table(box=None, pad_edge=False, header_style="bold cyan")
    table.add_column(first, min_width=32 if roomy else 25, no_wrap=True)
    for title in others:
        table.add_column(title, justify="right", min_width=9 if roomy else 7, no_wrap=True)
    return table
