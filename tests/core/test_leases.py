"""The lease table, against a model of what SQS and the owners know."""

import math
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from outboxd.core.lease_changes import (
    LONGEST_SECONDS,
    Change,
    Limited,
    Lost,
    NothingLeft,
    Notice,
    extension_seconds,
)
from outboxd.core.leases import LeaseTable

QUEUE = "orders"
OWNER = "consumer:orders/1#1"
OTHER = "consumer:orders/2#1"
FAR = 1e9


@dataclass(frozen=True)
class ALease:
    token: int
    message_id: str = ""
    received_at: float = 0.0
    visibility_seconds: int = 30
    permitted_until: float = FAR
    queue: str = QUEUE
    receipt_handle: str = field(default="")


def a_table(*leases: ALease, now: float = 0.0) -> LeaseTable[str]:
    table: LeaseTable[str] = LeaseTable()
    for lease in leases:
        assert table.hold(OWNER, lease, now) == []
    return table


def due(table: LeaseTable[str], now: float, most: int = 10) -> list[tuple[int, int]]:
    """Token and seconds of every change that is due."""
    return [(change.token, change.seconds) for change in table.due(QUEUE, now, most).changes]


def only_change(table: LeaseTable[str], now: float) -> Change[str]:
    [change] = table.due(QUEUE, now, 10).changes
    return change


def lost(*tokens: int, owner: str = OWNER, message_id: str = "") -> list[Notice[str]]:
    return [Lost(owner, token, QUEUE, message_id) for token in tokens]


@pytest.mark.parametrize(
    ("lease", "deadline", "now", "seconds"),
    [
        (ALease(1), 30, 16, 30),
        (ALease(1, permitted_until=40), 30, 16, 24),
        (ALease(1, permitted_until=39.2), 30, 16, 24),  # rounded up: the handler's last moment
        (ALease(1, permitted_until=30), 30, 16, None),
        (ALease(1, permitted_until=20), 30, 16, None),
        (ALease(1), LONGEST_SECONDS - 10, LONGEST_SECONDS - 20, 20),
        (ALease(1), LONGEST_SECONDS - 10, LONGEST_SECONDS - 20.5, 20),  # rounded down, or refused
        (ALease(1), LONGEST_SECONDS - 0.5, LONGEST_SECONDS - 10, None),
        (ALease(1, visibility_seconds=43_200), 43_200, 21_700, None),
    ],
)
def test_an_extension_ends_at_its_limits(
    lease: ALease, deadline: float, now: float, seconds: int | None
) -> None:
    assert extension_seconds(lease, deadline, now) == seconds


def test_a_lease_is_extended_when_half_of_its_timeout_is_left() -> None:
    table = a_table(ALease(1, "a"), ALease(2, "b", received_at=10))

    assert table.next_due(QUEUE) == 15
    assert due(table, 14.9) == []
    assert due(table, 15) == [(1, 30)]
    assert table.next_due(QUEUE) == 25


def test_a_batch_takes_the_most_urgent_first() -> None:
    table = a_table(*(ALease(n, f"m{n}", received_at=-n) for n in range(12)))

    assert [token for token, _ in due(table, 15, most=10)] == [11, 10, 9, 8, 7, 6, 5, 4, 3, 2]
    assert [token for token, _ in due(table, 15, most=10)] == [1, 0]


def test_a_deadline_moves_only_when_the_change_is_confirmed() -> None:
    table = a_table(ALease(1))
    change = only_change(table, 15)
    assert change.slack == 15
    table.failed(change, now=20, retry_at=22)

    retry = only_change(table, 22)
    assert (retry.slack, retry.attempt) == (8, 2)
    table.confirmed(retry, 22 + 30)

    assert table.next_due(QUEUE) == 22 + 15
    assert only_change(table, 37).attempt == 1


def test_a_retry_comes_while_there_is_time_left_however_long_the_backoff() -> None:
    table = a_table(ALease(1))
    table.failed(only_change(table, 15), now=26, retry_at=1000)

    assert table.next_due(QUEUE) == 28  # half of what was left


def test_a_lease_whose_extensions_all_failed_is_lost_at_its_deadline() -> None:
    table = a_table(ALease(1))
    table.failed(only_change(table, 15), now=29.95, retry_at=29.96)

    assert table.next_due(QUEUE) == pytest.approx(29.96)
    table.failed(only_change(table, 29.96), now=31, retry_at=32)
    result = table.due(QUEUE, 32, 10)
    assert result.changes == ()
    assert list(result.notices) == lost(1)


def test_nothing_else_happens_to_a_receipt_while_a_call_is_on_its_way() -> None:
    table = a_table(ALease(1))
    change = only_change(table, 15)

    assert due(table, 1000) == []
    assert table.next_due(QUEUE) is None
    assert table.forget(OWNER, [1]) == {(OWNER, 1)}
    table.gone(OWNER)
    assert due(table, 16) == [], "an extension that arrives after the release would undo it"
    table.confirmed(change, 45)
    assert due(table, 17) == [(1, 0)]


def test_a_forgotten_lease_is_not_extended_but_given_back_when_its_owner_dies() -> None:
    table = a_table(ALease(1))

    assert table.forget(OWNER, [1, 99]) == frozenset()
    assert due(table, 20) == []
    assert table.gone(OWNER) == []
    assert due(table, 20) == [(1, 0)]


def test_a_tombstone_ends_with_its_lease_and_is_reported_when_its_owner_dies() -> None:
    table = a_table(ALease(1))
    table.forget(OWNER, [1])

    assert list(table.due(QUEUE, 30, 10).notices) == []
    assert table.idle
    assert table.gone(OWNER) == [NothingLeft(OWNER, 1)]


def test_a_settled_lease_is_nobodys_business() -> None:
    table = a_table(ALease(1), ALease(2, "b"))
    table.forget(OWNER, [1])
    table.settled(OWNER, [1, 2, 99])

    assert table.idle
    assert table.gone(OWNER) == []
    assert table.next_due(QUEUE) is None


def test_an_extension_that_lands_after_the_settlement_changes_nothing() -> None:
    table = a_table(ALease(1))
    change = only_change(table, 15)
    table.settled(OWNER, [1])

    assert not table.idle, "a call is on its way"
    assert table.confirmed(change, 45) == []
    assert table.idle


def test_a_refused_extension_is_a_lost_lease() -> None:
    table = a_table(ALease(1, "m"))

    assert table.refused(only_change(table, 15)) == lost(1, message_id="m")
    assert due(table, 1000) == []
    assert table.tracked(QUEUE) == 0
    assert table.gone(OWNER) == [NothingLeft(OWNER, 1)]


def test_a_refused_extension_of_a_forgotten_lease_is_nobodys_loss() -> None:
    table = a_table(ALease(1))
    change = only_change(table, 15)
    table.forget(OWNER, [1])

    assert table.refused(change) == []


def test_a_given_back_lease_is_reported_and_over() -> None:
    table = a_table(ALease(1), ALease(2, "b"), ALease(3, "c"))
    table.gone(OWNER)
    first, second, third = table.due(QUEUE, 1, 10).changes

    assert table.confirmed(first, 1) == [NothingLeft(OWNER, 1)]
    assert table.refused(second) == [NothingLeft(OWNER, 2)]
    table.failed(third, now=1, retry_at=2)
    assert due(table, 2) == [(3, 0)]
    assert not table.idle


def test_giving_back_ends_with_the_lease() -> None:
    table = a_table(ALease(1))
    table.gone(OWNER)
    table.failed(only_change(table, 29), now=29, retry_at=40)

    assert table.next_due(QUEUE) == 29.5
    result = table.due(QUEUE, 30, 10)
    assert list(result.notices) == [NothingLeft(OWNER, 1)]
    assert result.changes == ()


def test_a_hold_of_a_dead_owner_is_refused() -> None:
    table = a_table()
    table.gone(OWNER)

    assert table.hold(OWNER, ALease(1), 0) == [NothingLeft(OWNER, 1)]
    assert table.idle
    assert table.hold(OTHER, ALease(1), 0) == []


def test_the_limit_is_told_once_and_the_lease_ends_at_its_deadline() -> None:
    table = a_table(ALease(1, permitted_until=40))
    table.confirmed(only_change(table, 15), 40)

    assert list(table.due(QUEUE, 25, 10).notices) == [Limited(QUEUE)]
    assert list(table.due(QUEUE, 39, 10).notices) == []
    assert list(table.due(QUEUE, 40, 10).notices) == lost(1)


def test_a_newer_receipt_replaces_the_older() -> None:
    table = a_table(ALease(1, "m"))

    assert table.hold(OTHER, ALease(7, "m", received_at=31), 32) == lost(1, message_id="m")
    assert [change.owner for change in table.due(QUEUE, 50, 10).changes] == [OTHER]


def test_an_older_receipt_that_is_told_late_does_not_replace_the_newer() -> None:
    table = a_table(ALease(7, "m", received_at=31), now=32)

    assert table.hold(OTHER, ALease(1, "m", received_at=0), 33) == lost(
        1, owner=OTHER, message_id="m"
    )
    assert [change.owner for change in table.due(QUEUE, 50, 10).changes] == [OWNER]


def test_a_receipt_of_a_poll_that_began_earlier_replaces_one_that_has_run_out() -> None:
    table = a_table(ALease(1, "m", received_at=2, visibility_seconds=2), now=2)

    assert table.hold(OTHER, ALease(7, "m", received_at=0), 8) == lost(1, message_id="m")


def test_a_lost_lease_does_not_stand_in_the_way_of_another() -> None:
    table = a_table(ALease(1, "m", received_at=5), now=5)
    table.refused(only_change(table, 20))

    assert table.hold(OTHER, ALease(7, "m", received_at=0), 21) == []


def test_a_dead_owners_lease_is_not_given_back_once_somebody_else_has_the_message() -> None:
    table = a_table(ALease(1, "m"))
    table.gone(OWNER)

    assert table.hold(OTHER, ALease(7, "m", received_at=1), 1) == [NothingLeft(OWNER, 1)]
    assert due(table, 1) == []


def test_a_repeated_hold_changes_nothing() -> None:
    table = a_table(ALease(1))
    table.forget(OWNER, [1])

    assert table.hold(OWNER, ALease(1), 1) == []
    assert due(table, 20) == []


def test_what_an_earlier_extender_may_have_extended_is_asked_for_at_once() -> None:
    lease = ALease(1, received_at=0, permitted_until=110)
    table = a_table(lease, now=100)  # granted until 30, by its own account

    change = only_change(table, 100)
    assert change.seconds == 10, "the unknown deadline may be earlier than the permitted time"
    table.failed(change, now=107, retry_at=108)
    assert due(table, 108) == [(1, 2)]


def test_what_an_earlier_extender_did_not_keep_is_lost_by_its_first_extension() -> None:
    table = a_table(ALease(1, received_at=0), now=100)

    assert table.refused(only_change(table, 100)) == lost(1)


class Leases(RuleBasedStateMachine):
    """Any order of holds, ends and answers, with SQS as the model: it knows each true deadline."""

    tokens = st.integers(1, 6)
    owners = st.sampled_from([OWNER, OTHER])

    @initialize()
    def start(self) -> None:
        self.table: LeaseTable[str] = LeaseTable()
        self.now = 0.0
        self.held: dict[tuple[str, int], ALease] = {}
        self.forgotten: set[tuple[str, int]] = set()
        self.seen: set[tuple[str, int]] = set()
        self.dead: set[str] = set()
        self.flying: dict[tuple[str, int], Change[str]] = {}
        self.deadlines: dict[tuple[str, int], float] = {}
        self.lost: set[tuple[str, int]] = set()
        self.over: set[tuple[str, int]] = set()

    def note(self, notices: list[Notice[str]]) -> None:
        for notice in notices:
            match notice:
                case Lost(owner=owner, token=token):
                    assert (owner, token) not in self.lost, "lost twice"
                    assert (owner, token) not in self.forgotten
                    assert owner not in self.dead
                    self.lost.add((owner, token))
                case NothingLeft(owner=owner, token=token):
                    assert owner in self.dead
                    self.over.add((owner, token))
                    self.held.pop((owner, token), None)
                case Limited():
                    pass

    @rule(
        owner=owners,
        token=tokens,
        visibility=st.integers(2, 40),
        permitted=st.floats(0, 200),
        message=st.integers(1, 4),
    )
    def hold(self, owner: str, token: int, visibility: int, permitted: float, message: int) -> None:
        key = (owner, token)
        if key in self.seen:
            return
        self.seen.add(key)
        lease = ALease(token, f"m{message}", self.now, visibility, self.now + permitted)
        if owner not in self.dead:
            self.held[key] = lease
            self.deadlines[key] = self.now + visibility
        self.note(self.table.hold(owner, lease, self.now))

    @rule(owner=owners, token=tokens)
    def forget(self, owner: str, token: int) -> None:
        waiting = self.table.forget(owner, [token])
        assert waiting == {(owner, token)} & self.flying.keys()
        if (owner, token) in self.held and owner not in self.dead:
            self.forgotten.add((owner, token))

    @rule(owner=owners, token=tokens)
    def settle(self, owner: str, token: int) -> None:
        self.table.settled(owner, [token])
        self.held.pop((owner, token), None)
        self.forgotten.discard((owner, token))

    @rule(owner=owners)
    def die(self, owner: str) -> None:
        self.dead.add(owner)
        self.note(self.table.gone(owner))

    @rule(seconds=st.floats(0.1, 30))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(most=st.integers(1, 10))
    def ask(self, most: int) -> None:
        result = self.table.due(QUEUE, self.now, most)
        self.note(list(result.notices))
        assert len(result.changes) <= most
        for change in result.changes:
            key = (change.owner, change.token)
            assert key not in self.flying, "two calls for one receipt"
            assert key in self.held, "a call for what is settled or over"
            lease = self.held[key]
            assert self.deadlines[key] > self.now, "a call for a lease that has run out"
            if change.gives_back:
                assert change.owner in self.dead
            else:
                assert change.owner not in self.dead
                assert key not in self.forgotten | self.lost
                half = lease.visibility_seconds / 2
                assert self.deadlines[key] - self.now <= half + 1e-9
                assert 0 < change.seconds <= lease.visibility_seconds
                assert self.now + change.seconds < lease.permitted_until + 1
                assert self.now + change.seconds > self.deadlines[key] - 1e-9
            self.flying[key] = change

    @precondition(lambda self: self.flying)
    @rule(data=st.data(), answer=st.sampled_from(["confirmed", "failed", "refused"]))
    def answer(self, data: st.DataObject, answer: str) -> None:
        key = data.draw(st.sampled_from(sorted(self.flying)))
        change = self.flying.pop(key)
        match answer:
            case "confirmed":
                if not change.gives_back:
                    self.deadlines[key] = self.now + change.seconds
                self.note(self.table.confirmed(change, self.now + change.seconds))
            case "failed":
                self.table.failed(change, self.now, self.now + 1)
            case _:
                self.note(self.table.refused(change))

    @invariant()
    def whatever_is_open_has_a_next_moment_or_a_call_on_its_way(self) -> None:
        next_due = self.table.next_due(QUEUE) or -math.inf
        if not self.table.idle and not self.flying:
            assert math.isfinite(next_due) or next_due == -math.inf
            assert self.table.next_due(QUEUE) is not None
        assert self.table.tracked(QUEUE) == len(
            {key for key in self.held if key[0] not in self.dead} - self.forgotten - self.lost
        )

    def teardown(self) -> None:
        """Every owner dies, SQS answers: all that was not settled is given back or over."""
        if not hasattr(self, "table"):
            return
        for key, change in self.flying.items():
            self.table.failed(change, self.now, self.now)
            assert key in self.seen
        for owner in (OWNER, OTHER):
            self.die(owner)
        while (changes := self.table.due(QUEUE, self.now, 10)).changes or changes.notices:
            self.note(list(changes.notices))
            for change in changes.changes:
                assert change.gives_back
                self.note(self.table.confirmed(change, self.now))
        while (at := self.table.next_due(QUEUE)) is not None:  # backoffs of failed calls
            result = self.table.due(QUEUE, at, 10)
            self.note(list(result.notices))
            for change in result.changes:
                self.note(self.table.confirmed(change, at))
        assert self.table.idle
        assert not self.held, "nobody was told what became of these"


TestLeases = Leases.TestCase
TestLeases.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
