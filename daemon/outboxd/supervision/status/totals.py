"""All queues and children together."""

from collections.abc import Iterable, Sequence

from outboxd.supervision.status.model import Child, Queue, Totals


def totals_of(queues: Sequence[Queue], children: Sequence[Child]) -> Totals:
    """Sums of what is known of all: a sum that leaves one out would be too small, and look good."""
    return Totals(
        visible=_count(queue.visible for queue in queues),
        in_flight=_count(queue.in_flight for queue in queues),
        dead_letters=_count(_letters(queues)),
        handled_per_second=_sum(queue.handled_per_second for queue in queues),
        recent_retries=_count(queue.recent_retries for queue in queues),
        recent_dead_letters=_count(queue.recent_dead_letters for queue in queues),
        failures=_count(child.failures for child in children),
    )


def _letters(queues: Sequence[Queue]) -> Iterable[int | None]:
    """Once for each dead-letter queue: queues that share one count the same letters."""
    counts: dict[str, int | None] = {}
    for queue in queues:
        if counts.get(queue.dead_letter_queue) is None:
            counts[queue.dead_letter_queue] = queue.dead_letters
    return counts.values()


def _sum(values: Iterable[float | None]) -> float | None:
    total, known = 0.0, False
    for value in values:
        if value is None:
            return None
        total, known = total + value, True
    return total if known else None


def _count(values: Iterable[int | None]) -> int | None:
    total = _sum(values)
    return None if total is None else round(total)
