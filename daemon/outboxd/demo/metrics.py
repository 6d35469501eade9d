"""The supervisor's children as its /metrics and its /healthz?verbose show them."""

import re
from collections import Counter
from collections.abc import Iterator

from msgspec import Struct
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample


class ChildView(Struct, frozen=True, kw_only=True):
    """One child's slot; `restarts` counts those that nobody planned.

    `rss_bytes` is 0 before a child has told its size, and `pid` None while there is no process.
    """

    name: str
    state: str
    restarts: int
    rss_bytes: int
    pid: int | None = None


CHILDREN = "outboxd_child_"
PROCESS = re.compile(r"^(\S+)\t\S+\tpid=(\d+)\t", re.MULTILINE)


def children(text: str) -> tuple[ChildView, ...]:
    """The children in an exposition, by name."""
    states: dict[str, str] = {}
    restarts: Counter[str] = Counter()
    rss: Counter[str] = Counter()
    for sample in _samples(text):
        child = sample.labels.get("child", "")
        match sample.name:
            case "outboxd_child_state" if sample.value == 1:
                states[child] = sample.labels["state"]
            case "outboxd_child_restarts_total":
                restarts[child] += int(sample.value)
            case "outboxd_child_resident_memory_bytes":
                rss[child] += int(sample.value)
            case _:
                pass
    return tuple(
        ChildView(name=name, state=states[name], restarts=restarts[name], rss_bytes=rss[name])
        for name in sorted(states)
    )


def pids(text: str) -> dict[str, int]:
    """The process ids in a verbose answer about health, by the child's name."""
    return {name: int(pid) for name, pid in PROCESS.findall(text)}


def _samples(text: str) -> Iterator[Sample]:
    # The rest would cost more than all other questions of a look together.
    ours = "".join(line for line in text.splitlines(True) if line.startswith(CHILDREN))
    for family in text_string_to_metric_families(ours):
        yield from family.samples
