from hypothesis import given
from hypothesis import strategies as st

from outboxd.core.lanes import lane_of, lanes_by, row_alone_in
from outboxd.core.outbox import bucket_of
from outboxd.core.routes import RouteTable
from outboxd.core.settings import RouteSettings
from tests.core.test_chains import event

KEYS = st.integers(-(2**63), 2**63 - 1)
SEQS = st.integers(1, 2**63 - 1)


@given(KEYS, SEQS)
def test_an_aggregates_lane_is_its_key(key: int, seq: int) -> None:
    lane = lane_of(event(seq, key), ordered=True)

    assert lane == key
    assert row_alone_in(lane) is None


@given(KEYS, SEQS)
def test_an_events_own_lane_tells_its_row_and_its_bucket(key: int, seq: int) -> None:
    lane = lane_of(event(seq, key), ordered=False)

    assert row_alone_in(lane) == seq
    assert bucket_of(lane) == bucket_of(key)


def test_the_route_says_whether_order_matters() -> None:
    one = event(5, 9)
    ordered = RouteSettings(events="*", to=("sqs:x",))
    unordered = RouteSettings(events="order.*", to=("sqs:x",), ordering="none")

    assert lanes_by(RouteTable([unordered, ordered]))(one) != 9
    assert lanes_by(RouteTable([ordered, unordered]))(one) == 9


def test_an_event_without_a_route_keeps_to_the_order_of_its_aggregate() -> None:
    assert lanes_by(RouteTable([]))(event(5, 9)) == 9
