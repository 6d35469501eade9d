from outboxd.core.breaker import PAUSES, Breaker


def steady() -> float:
    return 0.0


def test_a_new_destination_is_tried_with_one_pack() -> None:
    breaker = Breaker(steady)

    assert breaker.allowed(8) == 1
    assert not breaker.succeeded(breaker.episode)
    assert breaker.allowed(8) == 8


def test_a_failure_pauses_then_one_pack_tries_then_all_go() -> None:
    breaker = Breaker(steady)
    breaker.succeeded(breaker.episode)

    assert breaker.failed(breaker.episode, now=100.0)
    assert breaker.down
    assert breaker.allowed(8) == 0
    assert not breaker.pause_over(100.4)
    assert breaker.pause_over(100.5)
    assert breaker.allowed(8) == 1
    assert breaker.succeeded(breaker.episode)
    assert not breaker.down
    assert breaker.allowed(8) == 8


def test_calls_of_before_the_pause_neither_end_nor_prolong_it() -> None:
    breaker = Breaker(steady)
    before = breaker.episode
    breaker.failed(before, now=100.0)

    assert not breaker.failed(before, now=100.2)
    assert not breaker.succeeded(before)
    assert breaker.paused_until == 100.5
    assert breaker.allowed(8) == 0


def test_pauses_grow_up_to_half_a_minute() -> None:
    breaker, now, pauses = Breaker(steady), 0.0, []
    for _ in range(10):
        breaker.failed(breaker.episode, now)
        assert breaker.paused_until is not None
        pauses.append(breaker.paused_until - now)
        now = breaker.paused_until
        breaker.pause_over(now)

    assert pauses[:4] == [0.5, 1.0, 2.0, 4.0]
    assert pauses[-1] == PAUSES.cap_seconds == 30.0
