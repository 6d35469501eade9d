from outboxd.core.horizon import GRACE_SECONDS, SAMPLE_SECONDS, SAMPLES, Horizon, Sample


def sample(oldest_open: int, next_id: int, last_seq: int) -> Sample:
    return Sample(oldest_open=oldest_open, next_id=next_id, last_seq=last_seq)


def test_what_was_taken_before_the_grace_has_ended_when_nothing_is_open() -> None:
    horizon = Horizon()
    horizon.sampled(sample(10, 10, 500), 0.0)

    horizon.sampled(sample(20, 20, 600), GRACE_SECONDS - 0.1)
    assert horizon.seq == 0

    horizon.sampled(sample(30, 30, 700), GRACE_SECONDS)
    assert horizon.seq == 500


def test_an_open_transaction_holds_back_whatever_was_taken_since_it_began() -> None:
    horizon = Horizon()
    horizon.sampled(sample(7, 10, 500), 0.0)
    horizon.sampled(sample(7, 90, 900), 100.0)
    assert horizon.seq == 0

    horizon.sampled(sample(91, 91, 990), 101.0)
    assert horizon.seq == 500
    horizon.sampled(sample(91, 95, 999), 105.5)
    assert horizon.seq == 900


def test_a_transaction_that_does_not_end_fills_no_memory_and_is_overcome() -> None:
    horizon = Horizon()
    for second in range(10 * SAMPLES):
        horizon.sampled(sample(1, 2 + second, second), float(second))
    assert horizon.seq == 0

    horizon.sampled(sample(10**6, 10**6, 10**6), 10.0 * SAMPLES)

    assert horizon.seq == 10 * SAMPLES - GRACE_SECONDS


def test_another_database_has_other_numbers() -> None:
    horizon = Horizon()
    horizon.sampled(sample(10, 10, 500), 0.0)
    horizon.sampled(sample(10, 10, 500), GRACE_SECONDS)

    horizon.forget()
    horizon.sampled(sample(10, 10, 3), 2 * GRACE_SECONDS)

    assert horizon.seq == 0


def test_the_database_is_looked_at_now_and_then() -> None:
    horizon = Horizon()
    assert horizon.wants_sample(0.0)

    horizon.sampled(sample(10, 10, 500), 0.0)

    assert not horizon.wants_sample(SAMPLE_SECONDS - 0.1)
    assert horizon.wants_sample(SAMPLE_SECONDS)
