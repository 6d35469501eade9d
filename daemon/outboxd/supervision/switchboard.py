"""Routes messages between children, and keeps the leases of the living and the dead in view."""

import logging
from collections.abc import Callable, Iterable
from typing import assert_never
from uuid import UUID

from outboxd.channels.protocol import (
    Address,
    Alone,
    Bye,
    Drain,
    ExtenderDown,
    ExtenderUp,
    Forget,
    Forgotten,
    Heartbeat,
    Hold,
    LeaseLost,
    Message,
    MetricsSnapshot,
    OwnerGone,
    Pause,
    Ready,
    Resume,
    Settled,
    Suspect,
    SuspectsRecorded,
    Welcome,
)
from outboxd.core.children import Kind, Slot
from outboxd.supervision.fresh_leases import FreshLeases
from outboxd.supervision.ledger import Ledger
from outboxd.supervision.link import Link

log = logging.getLogger(__name__)

EXTENDER = Kind.EXTENDER.value


class Switchboard:
    """Hands messages on without ever waiting for anybody.

    Every Hold, Alone, Forget and Settled passes by here, so the ledger knows what a dead consumer
    held, and what a new extender has to be told.
    """

    def __init__(
        self, ledger: Ledger, took_snapshot: Callable[[Address, MetricsSnapshot], None]
    ) -> None:
        self._ledger = ledger
        self._took_snapshot = took_snapshot
        self._links: dict[str, Link] = {}
        self._extender_ready = False
        self._gone: dict[Address, str] = {}
        self._fresh = FreshLeases()
        self._paused: set[str] = set()

    async def pass_on_leases(self) -> None:
        """Tell the extender, for ever, of leases that are not settled soon."""
        while True:
            for hold in await self._fresh.grown():
                self._tell(EXTENDER, hold)

    def attach(self, link: Link, welcome: Welcome) -> None:
        """A new incarnation is there: greet it, and tell it what it must know from the start."""
        self._links[link.address.name] = link
        link.tell(welcome)
        if link.address.name == EXTENDER:
            self._hand_over_ledger(link)
            return
        if (queue := _queue_of(link)) in self._paused:
            link.tell(Pause(queue))  # before it hears that it may receive
        if self._extender_ready:
            link.tell(ExtenderUp())

    def detach(self, address: Address) -> None:
        """An incarnation is gone; frames for it go nowhere from now on."""
        if self._is_current(address):
            del self._links[address.name]
        if address.name == EXTENDER and self._extender_ready:
            self._extender_ready = False
            self._tell_consumers(ExtenderDown())

    def extender_ready(self) -> None:
        """An extender listens: consumers may receive."""
        self._extender_ready = True
        self._tell_consumers(ExtenderUp())

    def held_by(self, address: Address) -> int:
        """How many leases the ledger knows of this owner."""
        return len(self._ledger.held_by(address))

    def suspects_of(self, address: Address, reason: str, death: UUID) -> tuple[Suspect, ...]:
        """The messages that a dead owner may have died of, as long as nothing is given back."""
        return self._ledger.suspects_of(address, reason, death)

    def pause(self, queue: str) -> None:
        """Have every pool of this queue stop receiving, those that are started later included."""
        self._paused.add(queue)
        self._tell_pools(queue, Pause(queue))

    def resume(self, queue: str) -> None:
        """Have every pool of this queue receive again."""
        self._paused.discard(queue)
        self._tell_pools(queue, Resume(queue))

    def unsettled_dead(self, waiting: Iterable[Address]) -> tuple[Address, ...]:
        """Owners that hold leases but are gone, `waiting` ones among them."""
        dead = self._gone.keys() | set(waiting)
        return tuple(owner for owner in self._ledger.owners() if owner in dead)

    def owner_gone(self, address: Address, why: str) -> None:
        """A reaped owner's leases are to be given back, by this extender or by the next one."""
        if not self.held_by(address):
            return
        self._gone[address] = why
        self._tell_fresh(address)
        self._tell(EXTENDER, OwnerGone(address, why))

    def took(self, sender: Address, message: Message) -> None:
        """Route what a child said to whom it is for."""
        match message:
            case MetricsSnapshot():
                self._took_snapshot(sender, message)
            case Bye(snapshot=snapshot):
                if snapshot is not None:
                    self._took_snapshot(sender, snapshot)
            case Hold():
                if self._owned_by(sender, message):
                    self._ledger.saw(message)
                    if not self._fresh.took(message):
                        self._tell(EXTENDER, message)
            case Forget():
                if self._owned_by(sender, message):
                    self._ledger.saw(message)
                    self._tell_fresh(sender)
                    self._tell(EXTENDER, message)
            case Alone():
                if self._owned_by(sender, message):
                    self._ledger.saw(message)
            case Settled():
                self._took_settled(sender, message)
            case Forgotten(owner=owner) | LeaseLost(owner=owner):
                self._tell_incarnation(owner, message)
            case Ready() | Heartbeat() | SuspectsRecorded():
                return  # about the sender's own life; its slot has read it
            case (
                Welcome()
                | Drain()
                | OwnerGone()
                | ExtenderUp()
                | ExtenderDown()
                | Pause()
                | Resume()
            ):
                log.warning(
                    "a child sent what only the supervisor sends",
                    extra={"child": str(sender), "frame": type(message).__name__},
                )
            case _:
                assert_never(message)

    def _took_settled(self, sender: Address, message: Settled) -> None:
        if sender.name == EXTENDER:  # it has given back what a dead owner held
            self._ledger.saw(message)
            if not self.held_by(message.owner):
                self._gone.pop(message.owner, None)
        elif self._owned_by(sender, message):
            self._ledger.saw(message)
            if (news := self._fresh.settled(message)) is not None:
                self._tell(EXTENDER, news)

    def _hand_over_ledger(self, extender: Link) -> None:
        self._fresh.clear()
        for message in self._ledger.replay():
            extender.tell(message)
        for owner, why in self._gone.items():
            extender.tell(OwnerGone(owner, why))

    def _owned_by(self, sender: Address, message: Hold | Alone | Forget | Settled) -> bool:
        if message.owner == sender:
            return True
        log.error(
            "a child spoke for another one",
            extra={"child": str(sender), "owner": str(message.owner)},
        )
        return False

    def _is_current(self, address: Address) -> bool:
        link = self._links.get(address.name)
        return link is not None and link.address == address

    def _tell(self, name: str, message: Message) -> None:
        if (link := self._links.get(name)) is not None:
            link.tell(message)

    def _tell_fresh(self, owner: Address) -> None:
        if (hold := self._fresh.take(owner)) is not None:
            self._tell(EXTENDER, hold)

    def _tell_incarnation(self, address: Address, message: Message) -> None:
        if self._is_current(address):
            self._links[address.name].tell(message)

    def _tell_consumers(self, message: Message) -> None:
        for name, link in self._links.items():
            if name.startswith(Kind.CONSUMER.value):
                link.tell(message)

    def _tell_pools(self, queue: str, message: Message) -> None:
        for link in self._links.values():
            if _queue_of(link) == queue:
                link.tell(message)


def _queue_of(link: Link) -> str:
    """The queue of a consumer; of another child the empty string, which names none."""
    return Slot.parse(link.address.name).queue
