from typing import assert_never
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outboxd.channels.protocol import (
    MAX_FRAME_BYTES,
    NO_ANSWER,
    Address,
    Alone,
    Forget,
    Hold,
    Lease,
    Settled,
    Suspect,
    encode,
)
from outboxd.supervision.ledger import Ledger

ORDERS = Address("consumer:orders/1", 1)
SUCCESSOR = Address("consumer:orders/1", 2)
DEATH = UUID(int=7)


def a_lease(token: int, handle: str = "handle") -> Lease:
    return Lease(token, "orders", f"m-{token}", handle, 0.0, 30, 60.0)


def replayed(ledger: Ledger) -> Ledger:
    """What somebody knows who was told the replay alone."""
    copy = Ledger()
    for message in ledger.replay():
        copy.saw(message)
    return copy


def test_a_new_extender_is_told_what_the_living_and_the_dead_hold() -> None:
    ledger = Ledger()
    ledger.saw(Hold(ORDERS, (a_lease(1), a_lease(2))))
    ledger.saw(Hold(SUCCESSOR, (a_lease(1),)))
    ledger.saw(Settled(ORDERS, (1,)))

    assert list(ledger.replay()) == [Hold(ORDERS, (a_lease(2),)), Hold(SUCCESSOR, (a_lease(1),))]


def test_a_forgotten_lease_is_replayed_as_one_that_must_not_be_extended() -> None:
    ledger = Ledger()
    ledger.saw(Hold(ORDERS, (a_lease(1), a_lease(2))))
    ledger.saw(Forget(ORDERS, (2,), 17))

    assert list(ledger.replay()) == [
        Hold(ORDERS, (a_lease(1), a_lease(2))),
        Forget(ORDERS, (2,), NO_ANSWER),
    ]
    assert [lease.token for lease in ledger.held_by(ORDERS)] == [1, 2], "both can be given back"


def test_an_owner_is_gone_once_its_last_lease_is_settled() -> None:
    ledger = Ledger()
    ledger.saw(Hold(ORDERS, (a_lease(1), a_lease(2))))
    ledger.saw(Forget(ORDERS, (1,), 1))
    ledger.saw(Settled(ORDERS, (1, 2)))

    assert ledger.owners() == ()
    assert ledger.held_by(ORDERS) == ()
    assert ledger.forgotten_by(ORDERS) == frozenset()
    assert list(ledger.replay()) == []


def test_forgetting_and_settling_what_was_never_held_leaves_no_trace() -> None:
    ledger = Ledger()
    ledger.saw(Forget(ORDERS, (1,), 1))
    ledger.saw(Settled(ORDERS, (1,)))

    assert ledger.owners() == ()
    assert ledger.forgotten_by(ORDERS) == frozenset()


def a_suspect(token: int, *, alone: bool = False) -> Suspect:
    return Suspect("orders", f"m-{token}", alone, "signal", DEATH)


def test_suspects_are_the_messages_that_were_still_in_work() -> None:
    ledger = Ledger()
    ledger.saw(Hold(ORDERS, (a_lease(1), a_lease(2), a_lease(3), a_lease(4))))
    ledger.saw(Hold(SUCCESSOR, (a_lease(5),)))
    ledger.saw(Forget(ORDERS, (2,), 1))
    ledger.saw(Settled(ORDERS, (3,)))

    assert ledger.suspects_of(ORDERS, "signal", DEATH) == (a_suspect(1), a_suspect(4))


def test_a_message_that_ran_alone_is_the_only_suspect() -> None:
    ledger = Ledger()
    ledger.saw(Hold(ORDERS, (a_lease(1), a_lease(2), a_lease(3))))
    ledger.saw(Alone(ORDERS, 2))

    assert ledger.suspects_of(ORDERS, "signal", DEATH) == (a_suspect(2, alone=True),)


@pytest.mark.parametrize("end", [Forget(ORDERS, (2,), 1), Settled(ORDERS, (2,))])
def test_a_run_alone_that_is_over_says_nothing_about_the_next_death(end: Forget | Settled) -> None:
    ledger = Ledger()
    ledger.saw(Hold(ORDERS, (a_lease(1), a_lease(2))))
    ledger.saw(Alone(ORDERS, 2))
    ledger.saw(end)

    assert ledger.suspects_of(ORDERS, "signal", DEATH) == (a_suspect(1),)


def test_a_run_alone_is_over_with_the_next_receive_though_it_is_not_settled_yet() -> None:
    ledger = Ledger()
    ledger.saw(Hold(ORDERS, (a_lease(1),)))
    ledger.saw(Alone(ORDERS, 1))
    ledger.saw(Hold(SUCCESSOR, (a_lease(3),)))
    assert ledger.suspects_of(ORDERS, "signal", DEATH) == (a_suspect(1, alone=True),)

    ledger.saw(Hold(ORDERS, (a_lease(2),)))

    assert ledger.suspects_of(ORDERS, "signal", DEATH) == (a_suspect(1), a_suspect(2))


def test_of_two_runs_alone_the_later_one_counts() -> None:
    ledger = Ledger()
    ledger.saw(Hold(ORDERS, (a_lease(1), a_lease(2))))
    ledger.saw(Alone(ORDERS, 1))
    ledger.saw(Alone(ORDERS, 2))

    assert ledger.suspects_of(ORDERS, "signal", DEATH) == (a_suspect(2, alone=True),)


def test_a_run_alone_of_what_is_not_held_leaves_no_trace() -> None:
    ledger = Ledger()
    ledger.saw(Alone(ORDERS, 1))
    ledger.saw(Hold(ORDERS, (a_lease(1), a_lease(2))))

    assert ledger.suspects_of(ORDERS, "signal", DEATH) == (a_suspect(1), a_suspect(2))


def test_what_the_dead_were_suspected_of_goes_with_their_leases() -> None:
    ledger = Ledger()
    ledger.saw(Hold(ORDERS, (a_lease(1),)))
    ledger.saw(Alone(ORDERS, 1))
    ledger.saw(Settled(ORDERS, (1,)))
    ledger.saw(Hold(ORDERS, (a_lease(1),)))

    assert ledger.suspects_of(ORDERS, "signal", DEATH) == (a_suspect(1),)


def test_a_replay_never_exceeds_the_frame_limit() -> None:
    ledger = Ledger()
    for token in range(3_000):
        ledger.saw(Hold(ORDERS, (a_lease(token, "h" * 1_000),)))
    ledger.saw(Forget(ORDERS, tuple(range(3_000)), 1))

    frames = list(ledger.replay())

    assert len(frames) > 3
    assert all(len(encode(frame)) < MAX_FRAME_BYTES for frame in frames)
    assert replayed(ledger).held_by(ORDERS) == ledger.held_by(ORDERS)


owners = st.sampled_from([ORDERS, SUCCESSOR])
tokens = st.integers(1, 5)
messages = st.one_of(
    st.builds(lambda o, t: Hold(o, (a_lease(t),)), owners, tokens),
    st.builds(lambda o, t: Forget(o, (t,), 1), owners, tokens),
    st.builds(lambda o, t: Settled(o, (t,)), owners, tokens),
)


@given(st.lists(messages, max_size=40))
def test_a_replay_says_all_that_the_ledger_knows(history: list[Hold | Forget | Settled]) -> None:
    ledger = Ledger()
    held: set[tuple[Address, int]] = set()
    forgotten: set[tuple[Address, int]] = set()
    for message in history:
        ledger.saw(message)
        match message:
            case Hold(owner=owner, leases=(lease,)):
                held.add((owner, lease.token))
            case Forget(owner=owner, tokens=(token,)):
                forgotten |= {(owner, token)} & held
            case Settled(owner=owner, tokens=(token,)):
                held.discard((owner, token))
                forgotten.discard((owner, token))
            case Hold() | Forget() | Settled():
                raise AssertionError("one lease each")
            case _:
                assert_never(message)

    for known in (ledger, replayed(ledger)):
        assert held == {
            (owner, lease.token) for owner in known.owners() for lease in known.held_by(owner)
        }
        assert forgotten == {
            (owner, token) for owner in known.owners() for token in known.forgotten_by(owner)
        }
