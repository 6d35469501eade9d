from outboxd.core.restarts import RestartLimits, RestartLog
from outboxd.core.retry import Backoff

LIMITS = RestartLimits(
    failed_starts=3,
    crashes=3,
    crash_window_seconds=100,
    stable_seconds=60,
    backoff=Backoff(first_seconds=1, cap_seconds=30, jitter=0),
)


def a_log() -> RestartLog:
    return RestartLog(LIMITS, dice=lambda: 0.0)


def test_starts_that_never_became_ready_are_counted_without_a_window() -> None:
    log = a_log()
    for _ in range(2):
        log.never_ready()
    assert not log.exhausted

    log.never_ready()

    assert log.exhausted
    assert log.never_started
    assert not log.crash_looping


def test_a_start_that_became_ready_ends_the_row_of_failed_ones() -> None:
    log = a_log()
    log.never_ready()
    log.never_ready()

    log.crashed(now=0, ready_seconds=1)
    log.never_ready()

    assert not log.exhausted


def test_crashes_within_the_window_exhaust_the_limit() -> None:
    log = a_log()
    for now in (0, 50, 99):
        log.crashed(now, ready_seconds=1)

    assert log.crash_looping


def test_crashes_leave_the_window() -> None:
    log = a_log()
    for now in (0, 50, 100):
        log.crashed(now, ready_seconds=1)

    assert not log.exhausted


def test_pauses_grow_and_start_afresh_after_a_stable_time() -> None:
    log = a_log()
    pauses = []
    for now, ready_seconds in ((0, 1), (10, 1), (200, 61)):
        log.crashed(now, ready_seconds)
        pauses.append(log.pause_seconds())

    assert pauses == [1, 2, 1]


def test_a_forgiven_child_gets_its_tries_back() -> None:
    log = a_log()
    for _ in range(3):
        log.never_ready()

    log.forgive()

    assert not log.exhausted
