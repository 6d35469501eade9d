"""How much is in the outbox, counted as the relay's gauges count it: up to a cap."""

from outboxd.adapters.postgres.asking import Asking
from outboxd.adapters.postgres.upkeep import COUNT_CAP, DEAD, DEAD_CAP, OLDEST, PENDING
from outboxd.ports.outbox import Survey


def counts(asking: Asking) -> Survey:
    """The outbox as a whole."""
    ((pending,),) = asking.rows(PENDING, {"cap": COUNT_CAP})
    ((oldest,),) = asking.rows(OLDEST, {})
    ((dead,),) = asking.rows(DEAD, {"cap": DEAD_CAP})
    return Survey(pending, max(0.0, oldest), dead)
