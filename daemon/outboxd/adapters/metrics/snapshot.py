"""A process's own metrics as families that cross a channel."""

from collections.abc import Iterator

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric

from outboxd.channels.protocol import MAX_FRAME_BYTES, Family, Sample

BUDGET_BYTES = MAX_FRAME_BYTES * 3 // 4
"""A snapshot also travels inside of a Bye, so it stays well below the frame limit."""

LEFT_OUT = "outboxd_metrics_families_left_out"

_SUMMED = {"counter", "histogram"}
_encoder = msgspec.msgpack.Encoder()


def snapshot(registry: CollectorRegistry, budget_bytes: int = BUDGET_BYTES) -> tuple[Family, ...]:
    """Everything in the registry, in at most `budget_bytes` on the wire.

    Beyond that the largest families are left out: a handler's metric with a customer's id for a
    label must not silence all the others. How many were left out is a metric of its own.
    """
    families = [family for metric in registry.collect() for family in _families(metric)]
    sizes = {family.name: len(_encoder.encode(family)) for family in families}
    kept: set[str] = set()
    for name in sorted(sizes, key=lambda name: sizes[name]):
        if sizes[name] > budget_bytes:
            break
        budget_bytes -= sizes[name]
        kept.add(name)
    return (*(family for family in families if family.name in kept), _left_out(len(sizes), kept))


def _families(metric: Metric) -> Iterator[Family]:
    """A metric as families of the three types that can be added up.

    The `_created` series are left out: they would double the size of every snapshot, and the start
    of a counter that outlives its process is not the start of its process.
    """
    if metric.type in _SUMMED:
        samples = tuple(
            Sample(sample.name, dict(sample.labels), float(sample.value))
            for sample in metric.samples
            if not sample.name.endswith("_created")
        )
        yield Family(metric.name, metric.type, metric.documentation, samples)
    else:
        yield from _as_gauges(metric)


def _as_gauges(metric: Metric) -> Iterator[Family]:
    """A gauge as it is; a summary, an info or an enum as what its samples are by themselves."""
    by_name: dict[str, list[Sample]] = {}
    for sample in metric.samples:
        if sample.name.endswith("_created"):
            continue
        line = Sample(sample.name, dict(sample.labels), float(sample.value))
        by_name.setdefault(sample.name, []).append(line)
    for name, samples in by_name.items():
        yield Family(name, "gauge", metric.documentation, tuple(samples))


def _left_out(families: int, kept: set[str]) -> Family:
    sample = Sample(LEFT_OUT, {}, float(families - len(kept)))
    return Family(LEFT_OUT, "gauge", "Metrics too large for a snapshot frame", (sample,))
