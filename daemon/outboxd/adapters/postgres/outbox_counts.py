"""How much is in the outbox, counted as the relay's gauges count it: up to a cap."""

from typing import LiteralString

from outboxd.adapters.postgres.asking import Asking
from outboxd.adapters.postgres.row_counts import DEAD, PENDING, DeadCount, PendingCount
from outboxd.adapters.postgres.upkeep import OLDEST
from outboxd.ports.outbox import Survey


def counts(asking: Asking) -> Survey:
    """The outbox as a whole."""
    pending = _counted(asking, PendingCount(), PENDING)
    ((oldest,),) = asking.rows(OLDEST, {})
    return Survey(pending, max(0.0, oldest), _counted(asking, DeadCount(), DEAD))


def _counted(asking: Asking, count: PendingCount | DeadCount, query: LiteralString) -> int:
    while (parameters := count.question()) is not None:
        count.answered(asking.rows(query, parameters))
    return count.total
