"""What the life of a child needs from the supervisor around it."""

from typing import TYPE_CHECKING, Protocol

from outboxd.channels.protocol import Address, Message, Suspect, Welcome
from outboxd.core.exit_codes import ExitCode
from outboxd.supervision.incarnation import End
from outboxd.supervision.link import Link
from outboxd.supervision.observing import RestartReason

if TYPE_CHECKING:
    from outboxd.supervision.life import Life


class Surroundings(Protocol):
    """Is told what happens in a life, and answers at once."""

    def attach(self, link: Link, welcome: Welcome) -> None:
        """A new incarnation can be told things, the welcome first."""

    def took(self, sender: Address, message: Message) -> None:
        """An incarnation said something that is not about its own life."""

    def became_ready(self, life: "Life") -> None:
        """An incarnation is ready."""

    def took_over(self, address: Address) -> None:
        """An incarnation is ready, and what its predecessors may have died of is written down, so
        that what they held may be given back."""

    def due(self, life: "Life", number: int, reason: RestartReason) -> None:
        """The incarnation of that number is to be replaced; told again with each heartbeat."""

    def suspects_of(self, end: End) -> tuple[Suspect, ...]:
        """What an incarnation that has come to grief may have died of."""

    def ended(self, life: "Life", end: End) -> None:
        """An incarnation has been reaped, and its socket read to the end."""

    def surrendered(self, life: "Life", code: ExitCode, why: str) -> None:
        """This slot's limits are used up, or it said `why` it cannot work as things are."""
