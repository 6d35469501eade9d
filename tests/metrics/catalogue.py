"""Every metric family of a daemon, read from the code that declares it."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry

from outboxd.adapters.metrics.consumer import ConsumerMetrics
from outboxd.adapters.metrics.extender import ExtenderMetrics
from outboxd.adapters.metrics.inbox import InboxMetrics
from outboxd.adapters.metrics.relay import RelayMetrics
from outboxd.adapters.metrics.snapshot import snapshot
from outboxd.adapters.metrics.supervisor import SupervisorMetrics
from outboxd.adapters.metrics.user import PoolUserMetrics
from outboxd.channels.protocol import Address, Family, MetricsSnapshot
from outboxd.core.children import Kind
from outboxd.core.errors import OutageKind
from outboxd.core.settings import HandlerSettings, QueueSettings
from outboxd.ports.progress import Progress
from outboxd.ports.queue import Depth
from outboxd.supervision.metrics import MetricsBook
from outboxd.supervision.series import Merge, merge_of

_OPEN = {"queue", "handler", "child", "destination", "le", "version", "revision", "python"}
"""Labels whose values are names of the configuration, or numbers."""

_LATER = {("outboxd_sqs_request_duration_seconds", "result"): {kind.value for kind in OutageKind}}
"""Values of a closed set whose series appear with their first use."""

_OF_A_DAEMON = {
    "outboxd_ready": "min",
    "outboxd_config_last_reload_successful": "min",
    "outboxd_shutdown_in_progress": "max",
    "outboxd_supervisor_loop_lag_seconds": "max",
    "outboxd_queue_paused": "max",
}
_MERGES = {
    Merge.SUM: "sum",
    Merge.LARGEST: "max",
    Merge.SMALLEST: "min",
    Merge.EARLIEST: "min of those above 0",
}


class Entry(msgspec.Struct, frozen=True):
    """One family: `name` as a query writes it, `labels` with their values where those are a closed
    set, and how the values of several daemons become one."""

    name: str
    type: str
    labels: dict[str, tuple[str, ...]]
    help: str
    across: str


def catalogue() -> dict[str, tuple[Entry, ...]]:
    """All families by the process that tells them, each sorted by name."""
    settings = QueueSettings(handlers=(HandlerSettings(event="*", handler="a:b", name="h"),))
    consumer = CollectorRegistry()
    metrics = ConsumerMetrics(consumer, "q", settings, Progress())
    metrics.sampled(Depth(0, 0, 0, 0))
    InboxMetrics(consumer, "q")
    PoolUserMetrics(consumer, "q")
    relay = CollectorRegistry()
    RelayMetrics(relay, ["sqs:q"])
    extender = CollectorRegistry()
    ExtenderMetrics(extender, ["q"])
    own = SupervisorMetrics(
        [("relay", Kind.RELAY), ("extender", Kind.EXTENDER), ("consumer:q/1", Kind.CONSUMER)]
    )
    supervisor = [*_declared(own.registry, of_supervisor=True), *_about_children()]
    return {
        "supervisor": _sorted(supervisor),
        "relay": _sorted(_declared(relay)),
        "consumer pools": _sorted(_declared(consumer)),
        "extender": _sorted(_declared(extender)),
    }


def names() -> frozenset[str]:
    """Every name that a query may use: with `_bucket`, `_sum` and `_count` of histograms."""
    entries = [entry for group in catalogue().values() for entry in group]
    endings = {"histogram": ("_bucket", "_sum", "_count")}
    return frozenset(
        f"{entry.name}{end}" for entry in entries for end in endings.get(entry.type, ("",))
    )


def families() -> frozenset[str]:
    """Every name that prose may use: that of a histogram stands for its parts."""
    return frozenset(entry.name for group in catalogue().values() for entry in group)


def _sorted(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    return tuple(sorted(entries, key=lambda entry: entry.name))


def _declared(registry: CollectorRegistry, *, of_supervisor: bool = False) -> Iterator[Entry]:
    collectors: Iterable[Any] = registry._collector_to_names
    for collector in collectors:
        for metric in collector.collect():
            labels: dict[str, set[str]] = {
                label: set() for label in getattr(collector, "_labelnames", ())
            }
            for sample in metric.samples:
                for label, value in sample.labels.items():
                    labels.setdefault(label, set()).add(value)
            family = Family(metric.name, metric.type, metric.documentation, ())
            yield _entry(family, labels, of_supervisor=of_supervisor)


def _about_children() -> Iterator[Entry]:
    """What the supervisor tells about snapshots, and every snapshot about itself."""
    book = MetricsBook()
    book.took(Address("relay", 1), MetricsSnapshot(1, snapshot(CollectorRegistry())))
    for family in book.families():
        labels: dict[str, set[str]] = {
            label: set() for sample in family.samples for label in sample.labels
        }
        yield _entry(family, labels, of_supervisor=True)


def _entry(family: Family, labels: dict[str, set[str]], *, of_supervisor: bool) -> Entry:
    name = f"{family.name}_total" if family.type == "counter" else family.name
    closed = {
        label: () if label in _OPEN else tuple(sorted(values | _LATER.get((name, label), set())))
        for label, values in labels.items()
        if label != "le"
    }
    across = _across(family, closed) if of_supervisor else _MERGES[merge_of(family)]
    return Entry(name, family.type, closed, family.help, across)


def _across(family: Family, labels: dict[str, tuple[str, ...]]) -> str:
    if family.type != "gauge":
        return "sum"
    if family.name in _OF_A_DAEMON:
        return _OF_A_DAEMON[family.name]
    return "by child" if "child" in labels else "by daemon"
