"""The tables of the live picture: processes with their queues, and flows."""

from rich.table import Table
from rich.text import Text

from outboxd.demo.counting import QueueDepth
from outboxd.demo.flows import Flow
from outboxd.demo.killer import Kills
from outboxd.demo.metrics import ChildView
from outboxd.demo.observation import Observation
from outboxd.demo.wording import flow_title

STATE_STYLES = {
    "ready": "green",
    "starting": "yellow",
    "draining": "yellow",
    "backoff": "magenta",
    "failed": "bold red",
}

UNKNOWN = "-"

CONSUMER = "consumer:"


def children_table(observation: Observation, kills: Kills | None) -> Table:
    """Every child, and what its queue holds; its kills only when it is the demo that kills, for it
    knows of no others."""
    kill_titles = ["kills"] if kills is not None else []
    table = _table(
        "child", "pid", "state", *kill_titles, "restarts", "memory", "waiting", "busy", "dead"
    )
    for child in observation.children:
        table.add_row(
            child.name.removeprefix(CONSUMER),
            UNKNOWN if child.pid is None else str(child.pid),
            Text(child.state, style=STATE_STYLES.get(child.state, "")),
            *([str(kills.by_role.get(child.name, 0))] if kills is not None else []),
            str(child.restarts),
            _memory(child),
            *_queue(child, observation),
        )
    return table


def flows_table(observation: Observation) -> Table:
    """How far each flow is, and how fast, from the commit of its event to the effect."""
    table = _table("flow", "done", "of", "repeated", "per s", "p50", "p99")
    for name, flow in observation.count.flows.items():
        speed = observation.speeds.get(name)
        speeds = (
            [f"{speed.rate:.1f}", f"{speed.p50_seconds:.2f} s", f"{speed.p99_seconds:.2f} s"]
            if speed is not None
            else []
        )
        table.add_row(flow_title(name), *_numbers(flow), *speeds)
    return table


def _numbers(flow: Flow) -> list[str | Text]:
    done = Text(str(flow.got), style="bold red" if flow.too_many else "")
    return [done, str(flow.expected), str(flow.repeated) if flow.repeated else ""]


def _queue(child: ChildView, observation: Observation) -> list[str | Text]:
    """Waiting, being worked on, dead: in the first process of a pool, for all of them."""
    queue, _, number = child.name.removeprefix(CONSUMER).rpartition("/")
    if number != "1" or queue not in observation.queues:
        return []
    depth: QueueDepth = observation.queues[queue]
    dead = observation.dead_letters[queue].total
    return [
        str(depth.visible + depth.delayed),
        str(depth.in_flight),
        Text(str(dead), style="bold red" if dead else ""),
    ]


def _memory(child: ChildView) -> str:
    """As the child told last; of one that is not there (yet), that would be its predecessor's."""
    if child.rss_bytes == 0 or child.state not in ("ready", "draining"):
        return UNKNOWN
    return f"{child.rss_bytes / 1e6:.0f} MB"


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold cyan")
    table.add_column(first, min_width=21, no_wrap=True)
    for title in others:
        table.add_column(title, justify="right", min_width=4, no_wrap=True)
    return table
