"""Who hears what of what a child says."""

from uuid import UUID

import pytest

from outboxd.channels.protocol import (
    Address,
    Alone,
    Forget,
    Hold,
    Lease,
    Message,
    OwnerGone,
    Settled,
    Suspect,
)
from outboxd.core.clock import boottime
from outboxd.supervision.ledger import Ledger
from outboxd.supervision.switchboard import Switchboard
from tests.supervision.scene import Heard, a_welcome

ORDERS = Address("consumer:orders/1", 1)
MAILS = Address("consumer:mails/1", 1)
DEATH = UUID(int=7)


class Exchange:
    """A switchboard with an extender and two consumers; what they were told at first is gone."""

    def __init__(self) -> None:
        self.switchboard = Switchboard(Ledger(), lambda address, snapshot: None)
        names = ("extender", ORDERS.name, MAILS.name)
        self.links = {name: Heard(name) for name in names}
        for link in self.links.values():
            self.switchboard.attach(link, a_welcome(link.address))
            link.heard.clear()

    def heard(self, name: str) -> list[Message]:
        return self.links[name].heard


def a_hold(owner: Address, *tokens: int) -> Hold:
    leases = tuple(Lease(token, "orders", f"m-{token}", "h", 0.0, 30, 60.0) for token in tokens)
    return Hold(owner, leases)


def test_a_run_alone_is_noted_and_told_to_nobody() -> None:
    exchange = Exchange()
    exchange.switchboard.took(ORDERS, a_hold(ORDERS, 1, 2))
    exchange.switchboard.took(ORDERS, Alone(ORDERS, 2))

    assert exchange.heard("extender") == [a_hold(ORDERS, 1, 2)]
    assert exchange.heard(ORDERS.name) == exchange.heard(MAILS.name) == []
    assert exchange.switchboard.suspects_of(ORDERS, "crash", DEATH) == (
        Suspect("orders", "m-2", True, "crash", DEATH),
    )


def test_nobody_can_say_of_another_one_that_it_runs_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    exchange = Exchange()
    exchange.switchboard.took(ORDERS, a_hold(ORDERS, 1, 2))
    exchange.switchboard.took(MAILS, Alone(ORDERS, 2))

    assert len(exchange.switchboard.suspects_of(ORDERS, "crash", DEATH)) == 2
    (record,) = caplog.records
    assert record.message == "a child spoke for another one"


def a_fresh_hold(owner: Address, *tokens: int) -> Hold:
    now = boottime()
    leases = tuple(Lease(token, "orders", f"m-{token}", "h", now, 30, now + 60) for token in tokens)
    return Hold(owner, leases)


def test_of_messages_that_are_handled_quickly_the_extender_hears_nothing() -> None:
    exchange = Exchange()
    exchange.switchboard.took(ORDERS, a_fresh_hold(ORDERS, 1, 2))
    assert exchange.switchboard.held_by(ORDERS) == 2
    exchange.switchboard.took(ORDERS, Settled(ORDERS, (1, 2)))

    assert exchange.heard("extender") == []
    assert exchange.switchboard.held_by(ORDERS) == 0


def test_the_leases_of_a_dead_owner_are_told_before_its_death_however_fresh() -> None:
    exchange = Exchange()
    hold = a_fresh_hold(ORDERS, 1, 2)
    exchange.switchboard.took(ORDERS, hold)
    exchange.switchboard.took(MAILS, a_fresh_hold(MAILS, 3))
    exchange.switchboard.owner_gone(ORDERS, "crash")

    assert exchange.heard("extender") == [hold, OwnerGone(ORDERS, "crash")]


def test_a_lease_is_told_before_it_is_forgotten() -> None:
    """Only the extender can say that no extension of it is on its way."""
    exchange = Exchange()
    hold, forget = a_fresh_hold(ORDERS, 1, 2), Forget(ORDERS, (2,), 7)
    exchange.switchboard.took(ORDERS, hold)
    exchange.switchboard.took(ORDERS, forget)

    assert exchange.heard("extender") == [hold, forget]


def test_a_new_extender_is_told_of_fresh_leases_once() -> None:
    exchange = Exchange()
    hold = a_fresh_hold(ORDERS, 1, 2)
    exchange.switchboard.took(ORDERS, hold)
    exchange.switchboard.detach(exchange.links["extender"].address)
    successor = Heard("extender")
    exchange.switchboard.attach(successor, a_welcome(successor.address))
    exchange.switchboard.took(ORDERS, Settled(ORDERS, (1,)))

    assert successor.heard[1:] == [hold, Settled(ORDERS, (1,))]
