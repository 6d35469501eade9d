"""The movable clock, and the alarm that follows it."""

import asyncio

import pytest

from outboxd.localaws.alarm import Alarm
from outboxd.localaws.clock import Clock


def standing_clock() -> Clock:
    return Clock(monotonic=lambda: 5.0, epoch=1000.0)


def test_it_reads_the_epoch_it_was_given_and_runs_with_the_monotonic_clock() -> None:
    ticks = iter([5.0, 5.0, 7.5])
    clock = Clock(monotonic=lambda: next(ticks), epoch=1000.0)

    assert [clock.now(), clock.now()] == [1000.0, 1002.5]


def test_it_jumps_ahead_and_says_so() -> None:
    clock = standing_clock()
    heard: list[float] = []
    stop_listening = clock.on_advance(lambda: heard.append(clock.now()))

    clock.advance(60)
    stop_listening()
    clock.advance(1)

    assert heard == [1060.0]
    assert (clock.now(), clock.advanced) == (1061.0, 61.0)


@pytest.mark.parametrize("seconds", [-1, float("inf"), float("nan")])
def test_it_never_goes_back(seconds: float) -> None:
    with pytest.raises(ValueError, match="forward only"):
        standing_clock().advance(seconds)


async def test_an_alarm_rings_when_the_clock_is_moved_past_its_time() -> None:
    clock, rung = standing_clock(), asyncio.Event()
    alarm = Alarm(clock, rung.set)
    alarm.set(1060.0)

    clock.advance(59)
    await asyncio.sleep(0)
    assert not rung.is_set()

    clock.advance(1)
    await asyncio.wait_for(rung.wait(), 5)
    alarm.close()


async def test_an_alarm_rings_for_its_last_setting_only() -> None:
    clock, rings = standing_clock(), 0

    def ring() -> None:
        nonlocal rings
        rings += 1

    alarm = Alarm(clock, ring)
    alarm.set(1010.0)
    alarm.set(None)
    clock.advance(20)
    await asyncio.sleep(0.01)
    assert rings == 0

    alarm.set(1020.0)
    alarm.close()
    await asyncio.sleep(0.01)
    assert rings == 0
