import random

from hypothesis import given
from hypothesis import strategies as st

from outboxd.core import chains as chains_module
from outboxd.core.chains import Chains, Parked, Waiting
from outboxd.core.lanes import lane_of
from outboxd.core.outbox import StoredEvent

FOREVER = float("inf")


def event(seq: int, key: int) -> StoredEvent:
    return StoredEvent(
        key=key,
        seq=seq,
        id=str(seq),
        event_type="order.placed",
        aggregate_type="order",
        aggregate_id=str(key),
        payload="{}",
        traceparent=None,
        occurred_at="2026-01-01T00:00:00.000000Z",
        born_at=0.0,
        attempts=0,
        due_at=0.0,
        delivered_to=None,
    )


def by_key(event: StoredEvent) -> int:
    return event.key


def alone(event: StoredEvent) -> int:
    return lane_of(event, ordered=False)


def seqs(events: list[StoredEvent]) -> list[int]:
    return [each.seq for each in events]


def test_a_page_starts_the_first_event_of_each_aggregate() -> None:
    chains = Chains(by_key)

    heads = chains.admit([event(1, 7), event(2, 8), event(3, 7), event(4, 7)])

    assert seqs(heads) == [1, 2]
    assert chains.events == 4


def test_an_accepted_head_makes_way_for_the_next() -> None:
    chains = Chains(by_key)
    chains.admit([event(1, 7), event(3, 7)])

    following = chains.advance(7)

    assert following is not None
    assert following.seq == 3
    assert chains.advance(7) is None
    assert chains.moving == chains.events == chains.payload_length == 0


def test_what_a_late_answer_brings_of_a_moving_or_parked_aggregate_is_left_alone() -> None:
    chains = Chains(by_key)
    chains.admit([event(1, 7), event(2, 8)])
    chains.park(8, Parked(Waiting.BACKOFF, FOREVER, 2))

    assert chains.admit([event(1, 7), event(2, 8), event(5, 7)]) == []
    assert chains.advance(7) is None


def test_a_parked_aggregate_forgets_its_events_and_comes_back_in_time() -> None:
    chains = Chains(by_key)
    chains.admit([event(1, 7), event(3, 7)])
    chains.park(7, Parked(Waiting.BACKOFF, 10.0, 1))

    assert chains.events == 0
    assert chains.excluded_keys() == "7"
    assert chains.next_expiry == 10.0
    chains.expire(9.9)
    assert chains.admit([event(1, 7)]) == []
    chains.expire(10.0)
    assert seqs(chains.admit([event(1, 7)])) == [1]


def test_an_old_time_does_not_end_a_newer_reason() -> None:
    chains = Chains(by_key)
    chains.park(7, Parked(Waiting.BACKOFF, 10.0, 1))
    chains.park(7, Parked(Waiting.MARK, FOREVER, 1))

    chains.expire(11.0)

    assert chains.excluded_keys() == "7"


def test_the_oldest_of_those_that_wait_for_a_destination_try_first() -> None:
    chains = Chains(by_key)
    for key, seq in ((5, 50), (6, 20), (7, 30)):
        chains.park(key, Parked(Waiting.DESTINATION, FOREVER, seq, "sqs:a"))
    chains.park(8, Parked(Waiting.DESTINATION, FOREVER, 1, "sqs:b"))

    assert chains.first_waiting_for("sqs:a", 2) == [6, 7]
    assert sorted(chains.waiting_for("sqs:a")) == [5, 6, 7]


def test_lost_buckets_take_their_parked_aggregates_along() -> None:
    chains = Chains(by_key)
    for key in (-1, 63, 64, 5):
        chains.park(key, Parked(Waiting.ROUTE, FOREVER, 1))

    chains.forget_parked({63, 0})

    assert chains.excluded_keys() == "5"


def test_the_memory_for_parked_aggregates_is_bounded_but_marks_are_never_forgotten() -> None:
    chains = Chains(by_key)
    for key in range(chains_module.PARKED_LIMIT + 10):
        chains.park(key, Parked(Waiting.ROUTE, FOREVER, 1))

    assert chains.parked == chains_module.PARKED_LIMIT
    chains.park(-7, Parked(Waiting.MARK, FOREVER, 1))
    assert chains.parked == chains_module.PARKED_LIMIT + 1


def test_events_that_are_lanes_of_their_own_all_start_and_are_left_out_one_by_one() -> None:
    chains = Chains(alone)

    heads = chains.admit([event(1, 7), event(2, 7), event(3, 7)])
    chains.park(alone(event(2, 7)), Parked(Waiting.BACKOFF, FOREVER, 2))
    chains.drop(alone(event(1, 7)))

    assert seqs(heads) == [1, 2, 3]
    assert chains.excluded_keys() == ""
    assert sorted(chains.excluded_seqs()) == [2, 3]

    chains.forget_parked({7})

    assert chains.excluded_seqs() == [3]


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=80),
    st.integers(0, 2**32),
)
def test_whatever_happens_each_aggregate_goes_on_in_order(keys: list[int], seed: int) -> None:
    """Reads of a table, acceptances and failures in any order, as the relay makes them."""
    dice = random.Random(seed)
    table = [event(seq, key) for seq, key in enumerate(keys)]
    chains = Chains(by_key)
    flying: dict[int, StoredEvent] = {}
    accepted: list[StoredEvent] = []
    now = 0.0
    while len(accepted) < len(table):
        now += 1.0
        chains.expire(now)
        excluded = set(chains.excluded_keys().split(","))
        done = {each.seq for each in accepted}
        page = [row for row in table if row.seq not in done and str(row.key) not in excluded][
            : dice.randint(1, 10)
        ]
        for head in chains.admit(page):
            assert head.key not in flying
            flying[head.key] = head
        for key in dice.sample(sorted(flying), k=len(flying) // 2 + len(flying) % 2):
            head = flying.pop(key)
            if dice.random() < 0.3:
                chains.park(key, Parked(Waiting.BACKOFF, now + dice.random() * 3, head.seq))
            else:
                accepted.append(head)
                following = chains.advance(key)
                if following is not None:
                    flying[key] = following

    for key in set(keys):
        of_key = [each.seq for each in accepted if each.key == key]
        assert of_key == sorted(of_key)
    assert sorted(seqs(accepted)) == list(range(len(table)))


def test_the_lowest_event_of_what_was_unparked_is_told_once() -> None:
    chains = Chains(by_key)
    for key, seq in ((1, 50), (65, 20), (2, 7)):  # 1 and 65 are of one bucket
        chains.park(key, Parked(Waiting.BACKOFF, FOREVER, seq))

    chains.unpark([1, 65])

    assert chains.reopened() == {1: 20}
    assert chains.reopened() == {}
