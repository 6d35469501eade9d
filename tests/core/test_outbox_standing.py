"""Where a row of the outbox stands, and what an operator may do about it."""

from typing import Any

import pytest

from outboxd.core.outbox_filters import State
from outboxd.core.outbox_standing import (
    Behind,
    Dead,
    Discarded,
    Held,
    Next,
    Published,
    Retrying,
    Row,
    Standing,
    Stopped,
    discard_refusal,
    requeue_refusal,
    standing,
    state_of,
)

NOW = 100.0
FOREVER = float("inf")


def row(**columns: Any) -> Row:
    return Row(7, "id", "order.placed", "order", "42", 50.0, **columns)


@pytest.mark.parametrize(
    ("columns", "stands", "state", "requeues", "discards"),
    [
        ({}, Next(), State.PENDING, False, True),
        ({"head_seq": 7}, Next(), State.PENDING, False, True),
        ({"head_seq": 5}, Next(behind=5), State.PENDING, False, True),
        ({"next_attempt_at": 99.0}, Next(), State.PENDING, False, True),
        ({"next_attempt_at": 101.0}, Retrying(101.0), State.FAILING, False, True),
        ({"next_attempt_at": FOREVER}, Stopped(), State.STOPPED, True, True),
        ({"unrouted": True}, Held(), State.HELD, False, True),
        # Its own trouble is told before that of its head.
        (
            {"unrouted": True, "head_seq": 5, "head_next_attempt_at": FOREVER},
            Held(),
            State.HELD,
            False,
            True,
        ),
        (
            {"head_seq": 5, "head_next_attempt_at": FOREVER},
            Behind(5, Stopped()),
            State.BLOCKED,
            False,
            True,
        ),
        (
            {"head_seq": 5, "head_next_attempt_at": 101.0},
            Behind(5, Retrying(101.0)),
            State.BLOCKED,
            False,
            True,
        ),
        ({"head_seq": 5, "head_unrouted": True}, Behind(5, Held()), State.BLOCKED, False, True),
        # Its route has no order: it waits for no other event, but it can have trouble of its own.
        (
            {"alone": True, "head_seq": 5, "head_next_attempt_at": FOREVER},
            Next(),
            State.PENDING,
            False,
            True,
        ),
        ({"alone": True, "next_attempt_at": 101.0}, Retrying(101.0), State.FAILING, False, True),
        ({"dead_at": 90.0, "next_attempt_at": 90.0}, Dead(90.0), State.DEAD, True, True),
        ({"dead_at": 90.0}, Dead(90.0), State.DEAD, True, True),
        (
            {"dead_at": 90.0, "next_attempt_at": FOREVER},
            Discarded(90.0),
            State.DISCARDED,
            True,
            False,
        ),
        ({"published_at": 80.0}, Published(80.0), State.PUBLISHED, False, False),
        # A late success is a fact, whatever was said before.
        (
            {"published_at": 95.0, "dead_at": 90.0, "next_attempt_at": FOREVER},
            Published(95.0),
            State.PUBLISHED,
            False,
            False,
        ),
    ],
)
def test_where_a_row_stands(
    columns: dict[str, Any], stands: Standing, state: State, requeues: bool, discards: bool
) -> None:
    found = standing(row(**columns), NOW)

    assert found == stands
    assert state_of(found) is state
    assert (requeue_refusal(found) is None) is requeues
    assert (discard_refusal(found) is None) is discards
