"""What dead consumers held: kept for their successors to be suspected, then given back."""

from outboxd.channels.protocol import Address
from outboxd.pacing import pause
from outboxd.supervision.stopping import StopOrder
from outboxd.supervision.switchboard import Switchboard

SUCCESSOR_SECONDS = 10.0
"""How long a dead pool's leases wait for its successor before they are given back anyway."""


class Estates:
    """Leases of the dead wait for a successor that has written down what may have killed its
    predecessor: whoever gets these messages next has to find them suspected."""

    def __init__(self, switchboard: Switchboard, stop: StopOrder) -> None:
        self._switchboard = switchboard
        self._stop = stop
        self._dead: dict[Address, str] = {}

    def left_by(self, dead: Address, why: str) -> bool:
        """It has been reaped; whether it left anything, which is then to be given back."""
        if not self._switchboard.held_by(dead):
            return False
        self._dead[dead] = why
        return True

    async def await_successor(self, dead: Address) -> None:
        """Give back at the latest after a bound, though no successor has said anything."""
        await pause(self._stop.given, SUCCESSOR_SECONDS)
        self.give_back(dead)

    def taken_over(self, name: str) -> None:
        """The slot of that name has a process that knows what to suspect."""
        for dead in [owner for owner in self._dead if owner.name == name]:
            self.give_back(dead)

    def give_back(self, dead: Address) -> None:
        """Now, and only once."""
        if (why := self._dead.pop(dead, None)) is not None:
            self._switchboard.owner_gone(dead, why)

    def give_all_back(self) -> None:
        """Nobody's successor will come."""
        for dead in list(self._dead):
            self.give_back(dead)

    def unsettled(self) -> tuple[Address, ...]:
        """Dead owners whose leases have not all been given back yet."""
        return self._switchboard.unsettled_dead(self._dead)
