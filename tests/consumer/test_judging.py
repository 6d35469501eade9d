"""The judgement over one call of a handler, and the plan for its message."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outboxd.core.errors import Reject, RetryLater
from outboxd.core.judging import (
    LONGEST_ERROR,
    Away,
    Busy,
    Ending,
    Judgement,
    Patience,
    Raised,
    RetryCause,
    Returned,
    TimedOut,
    clean,
    describe,
    judge,
    judge_unknown_type,
    raised,
    said,
    spent,
)
from outboxd.core.message_plan import (
    Bury,
    Delete,
    HandlerResult,
    HideFor,
    plan,
    visibility,
)
from outboxd.core.outcomes import DeadLetter, DeadReason, Done, Outcome, Retry
from outboxd.core.retry import Backoff

PATIENCE = Patience(3, Backoff(first_seconds=2, cap_seconds=300, jitter=0.5))


def judged(ending: Ending, attempts: int = 1) -> Judgement:
    return judge(ending, attempts, PATIENCE, lambda: 0.0)


@pytest.mark.parametrize(
    ("ending", "attempts", "judgement"),
    [
        (Returned(Done()), 0, Judgement(Done())),
        (Returned(Done(duplicate=True)), 2, Judgement(Done(duplicate=True))),
        (Raised("x"), 1, Judgement(Retry(2, "x"), RetryCause.ERROR)),
        (Raised("x"), 2, Judgement(Retry(4, "x"), RetryCause.ERROR)),
        (Raised("x"), 3, Judgement(DeadLetter(DeadReason.MAX_ATTEMPTS, "x"))),
        (Raised("x"), 7, Judgement(DeadLetter(DeadReason.MAX_ATTEMPTS, "x"))),
        (Returned(Retry(9, "x")), 1, Judgement(Retry(9, "x"), RetryCause.REQUESTED)),
        (Returned(Retry(9, "x")), 3, Judgement(DeadLetter(DeadReason.MAX_ATTEMPTS, "x"))),
        (Returned(Retry(-1)), 1, Judgement(Retry(0), RetryCause.REQUESTED)),
        (Returned(Retry(math.nan)), 1, Judgement(Retry(2), RetryCause.REQUESTED)),
        (Returned(Retry(math.inf)), 1, Judgement(Retry(2), RetryCause.REQUESTED)),
        (Returned(Retry(1e9)), 1, Judgement(Retry(43_200), RetryCause.REQUESTED)),
        (Returned(DeadLetter(error="x")), 1, Judgement(DeadLetter(error="x"))),
        (TimedOut(5), 1, Judgement(Retry(2, "timed out after 5 s"), RetryCause.TIMEOUT)),
        (TimedOut(5), 3, Judgement(DeadLetter(DeadReason.TIMEOUT, "timed out after 5 s"))),
        (Away("x"), 99, Judgement(Retry(5, "x"), RetryCause.DATABASE)),
        (Busy(), 99, Judgement(Retry(5, "another copy is being handled"), RetryCause.BUSY)),
    ],
)
def test_what_becomes_of_a_message(ending: Ending, attempts: int, judgement: Judgement) -> None:
    assert judged(ending, attempts) == judgement


@pytest.mark.parametrize("ending", [Away("x"), Busy(), Returned(Done()), Returned(Done(True))])
def test_nobody_to_blame_costs_no_attempt(ending: Ending) -> None:
    assert spent(ending) is None


@pytest.mark.parametrize(
    "ending",
    [Raised("x"), TimedOut(1), Returned(Retry(1)), Returned(DeadLetter(error="x"))],
)
def test_what_a_handler_did_costs_an_attempt(ending: Ending) -> None:
    assert spent(ending) is not None


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_a_backoff_stays_within_its_bounds(attempts: int, dice: float) -> None:
    patience = Patience(10**6, PATIENCE.backoff)
    outcome = judge(Raised("x"), attempts, patience, lambda: dice).outcome
    assert isinstance(outcome, Retry)
    assert 1 <= outcome.after_seconds <= 300


class Hopeless(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "ending"),
    [
        (ValueError("no"), Raised("ValueError: no")),
        (SystemExit(), Raised("SystemExit")),
        (Hopeless(), Raised("Hopeless: (its text could not be made)")),
        (Reject("no"), Returned(DeadLetter(DeadReason.REJECTED, "Reject: no"))),
        (RetryLater("no", after_seconds=3), Returned(Retry(3, "RetryLater: no"))),
        (
            ExceptionGroup("g", [ExceptionGroup("h", [Reject("no")])]),
            Returned(DeadLetter(DeadReason.REJECTED, "Reject: no")),
        ),
    ],
)
def test_exceptions_speak_for_the_handler(error: BaseException, ending: Ending) -> None:
    assert raised(error) == ending


def test_a_group_of_several_errors_is_one_failure() -> None:
    ending = raised(ExceptionGroup("both", [Reject("no"), ValueError("no")]))
    assert isinstance(ending, Raised)


@pytest.mark.parametrize("value", [False, True, 0, 1, "", "x", [], Done, object()])
def test_anything_but_an_outcome_is_an_error(value: object) -> None:
    ending = said(value, "mailer")
    assert isinstance(ending, Raised)
    assert "handler mailer returned" in ending.error


@given(st.text(st.characters(), max_size=3000))
def test_an_error_can_be_stored_anywhere(text: str) -> None:
    cleaned = clean(text)
    assert "\0" not in cleaned
    assert len(cleaned) <= LONGEST_ERROR
    cleaned.encode()
    assert clean(cleaned) == cleaned
    assert describe(ValueError(text)).startswith("ValueError")


def test_an_unknown_type_is_retried_until_its_receives_run_out() -> None:
    assert isinstance(judge_unknown_type(2, PATIENCE).outcome, Retry)
    outcome = judge_unknown_type(3, PATIENCE).outcome
    assert isinstance(outcome, DeadLetter)
    assert outcome.reason is DeadReason.UNKNOWN_TYPE


DEAD = DeadLetter(DeadReason.REJECTED, "no")


@pytest.mark.parametrize(
    ("outcomes", "planned"),
    [
        ([Done()], Delete()),
        ([Done(), Done(duplicate=True)], Delete()),
        ([Retry(9), Done(), Retry(4)], HideFor(4)),
        ([DEAD, Retry(4)], HideFor(4)),
    ],
)
def test_any_pending_handler_keeps_the_message(outcomes: list[Outcome], planned: Any) -> None:
    assert plan([HandlerResult(f"h{n}", o) for n, o in enumerate(outcomes)]) == planned


OUTCOMES = st.one_of(
    st.builds(Done, st.booleans()),
    st.builds(Retry, st.floats(0, 43_200)),
    st.builds(DeadLetter, st.sampled_from(list(DeadReason)), st.text()),
)


@given(st.lists(OUTCOMES, min_size=1, max_size=6))
def test_a_message_goes_only_when_every_handler_has_ended(outcomes: list[Outcome]) -> None:
    results = [HandlerResult(f"h{n}", o, n) for n, o in enumerate(outcomes)]
    planned = plan(results)
    pending = [o.after_seconds for o in outcomes if isinstance(o, Retry)]
    dead = [r.handler for r in results if isinstance(r.outcome, DeadLetter)]
    match planned:
        case HideFor(seconds=seconds):
            assert seconds == min(pending)
        case Bury(dead=named):
            assert not pending
            assert [d.handler for d in named] == dead
        case Delete():
            assert not pending
            assert not dead


@given(st.floats(0, 1e6), st.floats(0, 50_000))
def test_nothing_is_hidden_beyond_twelve_hours_after_its_receive(
    seconds: float, elapsed: float
) -> None:
    hidden = visibility(seconds, elapsed)
    assert hidden >= 0
    assert hidden == 0 or elapsed + hidden <= 43_200
    assert hidden >= seconds or hidden == max(0, math.floor(43_200 - elapsed))
