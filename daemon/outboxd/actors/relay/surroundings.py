"""What every part of the relay is given: who counts, what time it is, what chance says."""

from collections.abc import Callable
from typing import NamedTuple

from outboxd.actors.relay.ledger import Ledger
from outboxd.core.chains import Chains
from outboxd.core.holdings import Holdings
from outboxd.core.retry import Dice
from outboxd.ports.relay_observer import RelayObserver


class Surroundings(NamedTuple):
    """The observer, the clock of deadlines and leases, and the dice."""

    observer: RelayObserver
    clock: Callable[[], float]
    dice: Dice


class Memory(NamedTuple):
    """All that the relay knows: its buckets, its aggregates, and what is not marked yet."""

    holdings: Holdings
    chains: Chains
    ledger: Ledger
