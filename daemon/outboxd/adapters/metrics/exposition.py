"""Everything that the supervisor knows, in the text that a scraper asks for."""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Sample

from outboxd.channels.protocol import Family


class Exposition:
    """Renders the supervisor's own registry and the children's families, from memory alone.

    No child is asked at scrape time: one that hangs must not make the scrape hang.
    """

    def __init__(
        self, registry: CollectorRegistry, families: Callable[[], Iterable[Family]]
    ) -> None:
        self._registry = registry
        self._families = families

    def render(self, accept: str) -> tuple[bytes, str]:
        """The body and its content type, as negotiated by the request's Accept header."""
        encode, content_type = choose_encoder(accept)
        return encode(self), content_type

    def lines(self) -> Iterator[Sample]:
        """All samples, for whoever wants values and not a text."""
        for metric in self.collect():
            yield from metric.samples

    def collect(self) -> Iterator[Metric]:
        """All metrics, the supervisor's own first; this makes it a collector to the encoders."""
        for own in self._registry.collect():
            # Children tell none either; a counter's first sample is 0 from the start here.
            own.samples = [each for each in own.samples if not each.name.endswith("_created")]
            yield own
        for family in self._families():
            yield _metric(family)


def _metric(family: Family) -> Metric:
    metric = Metric(family.name, family.help, family.type)
    for sample in family.samples:
        metric.add_sample(sample.name, sample.labels, sample.value)
    return metric
