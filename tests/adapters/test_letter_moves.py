"""Letters go back no faster than they are asked to."""

from outboxd.adapters.sqs.letter_moves import Pace


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


async def seconds_for(letters: int, per_second: int | None) -> float:
    clock = Clock()
    pace = Pace(per_second, clock, clock.sleep)
    while letters > 0:
        number = await pace.turn(min(10, letters))
        assert number > 0
        letters -= number
    return clock.now - 1000.0


async def test_a_pace_is_kept_from_the_slowest_to_the_fastest() -> None:
    assert 9 <= await seconds_for(10, 1) <= 10.01
    assert 19 <= await seconds_for(100, 5) <= 20.01
    assert 2.8 <= await seconds_for(1000, 333) <= 3.1


async def test_without_a_pace_nobody_waits() -> None:
    assert await seconds_for(1000, None) == 0
