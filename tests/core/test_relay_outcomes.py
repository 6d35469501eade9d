import pytest

from outboxd.core.relay_outcomes import (
    ERROR_BYTES,
    PUBLISHED,
    Accepted,
    Away,
    Bury,
    DeliveryResult,
    Faulted,
    HoldBack,
    Refused,
    TryAgain,
    Verdict,
    clean_error,
    judge,
)
from outboxd.core.retry import Backoff

BACKOFF = Backoff(first_seconds=1.0, cap_seconds=8.0, jitter=0.0)
BUSY = Faulted("busy", blameless=True)


@pytest.mark.parametrize(
    ("results", "verdict"),
    [
        ([], PUBLISHED),
        ([Accepted()], PUBLISHED),
        ([Accepted(), Accepted()], PUBLISHED),
        ([Refused("too large")], Bury(3, "a: too large")),
        ([Accepted(), Refused("no")], Bury(3, "b: no")),
        ([Faulted("x"), Refused("no")], Bury(3, "b: no")),
        ([Away(paused=True), Refused("no")], Bury(3, "b: no")),
        ([Faulted("x")], TryAgain(3, 4.0, "a: x")),
        ([Accepted(), Faulted("x")], TryAgain(3, 4.0, "b: x")),
        ([Away(paused=True), Faulted("x")], TryAgain(3, 4.0, "b: x")),
        ([Faulted("x"), Faulted("y")], TryAgain(3, 4.0, "a: x; b: y")),
        ([Away(paused=True)], HoldBack(destination="a")),
        ([Accepted(), Away(paused=True)], HoldBack(destination="b")),
        ([BUSY, Away(paused=True)], HoldBack(destination="b")),
        ([Away(paused=False)], HoldBack()),
        ([BUSY], HoldBack(delay_seconds=1.0)),
        ([Accepted(), BUSY], HoldBack(delay_seconds=1.0)),
    ],
)
def test_the_verdict_on_an_event_that_failed_twice(
    results: list[DeliveryResult], verdict: Verdict
) -> None:
    named = list(zip("ab", results, strict=False))

    assert judge(named, 2, 20, BACKOFF) == verdict


def test_the_last_attempt_is_the_last() -> None:
    assert judge([("a", Faulted("x"))], 2, 3, BACKOFF) == Bury(3, "given up after 3 attempts; a: x")
    assert isinstance(judge([("a", BUSY)], 2, 3, BACKOFF), HoldBack)


def test_an_error_is_made_storable() -> None:
    assert clean_error("nul \0 end") == "nul \\0 end"
    assert clean_error("half \ud83d end") == "half ? end"
    assert len(clean_error("é" * 5000).encode()) == ERROR_BYTES
    assert clean_error("x" + "é" * 5000).endswith("é")
