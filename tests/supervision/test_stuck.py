"""A pool in which a call neither ends nor can be ended."""

import math

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outboxd.channels.protocol import Welcome
from outboxd.supervision.call_watch import CallWatch
from outboxd.supervision.link import Link
from outboxd.supervision.observing import RestartReason
from outboxd.supervision.process import Spawn
from tests.supervision.scene import Facts, Run, a_supervisor, spec

pytestmark = pytest.mark.filterwarnings("ignore:.*os.fork:DeprecationWarning")


async def test_it_is_put_down_and_what_it_held_is_suspected(
    spawn: Spawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = Facts()
    name = "consumer:stuck/1"
    supervisor = a_supervisor(facts, spawn, spec(name, call_limit_seconds=0.5))
    told: list[list[tuple[str, str]]] = []
    attach = supervisor.attach

    def noting(link: Link, welcome: Welcome) -> None:
        told.append([(suspect.message_id, suspect.reason) for suspect in welcome.suspects])
        attach(link, welcome)

    monkeypatch.setattr(supervisor, "attach", noting)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Run(supervisor))
        await facts.until(lambda f: f.history.count(f"{name} ready") == 2)
        supervisor.stop("test")

    assert facts.restarts[0] == (name, RestartReason.STUCK)
    assert f"{name} backoff" in facts.history, "it counts as a crash"
    assert told[1] == [("m-2", "stuck"), ("m-3", "stuck")]


def test_a_call_is_stuck_once_it_has_been_seen_for_the_whole_limit() -> None:
    watch = CallWatch(limit_seconds=60, gap_seconds=30)

    for now in range(100, 160, 2):
        watch.seen(99.0, now)
    assert not watch.stuck.is_set()

    watch.seen(99.0, 160)
    assert watch.stuck.is_set()


def test_calls_that_follow_each_other_are_none_that_is_stuck() -> None:
    watch = CallWatch(limit_seconds=60, gap_seconds=30)

    for now in range(0, 3600, 2):
        watch.seen(now - now % 50, now)

    assert not watch.stuck.is_set()


def test_between_two_calls_nothing_runs() -> None:
    watch = CallWatch(limit_seconds=60, gap_seconds=30)

    for now in range(0, 3600, 2):
        watch.seen(None, now)

    assert not watch.stuck.is_set()


def test_an_hour_in_which_the_machine_slept_makes_no_call_stuck() -> None:
    watch = CallWatch(limit_seconds=60, gap_seconds=30)

    watch.seen(99.0, 100)
    watch.seen(99.0, 3700)
    watch.seen(99.0, 3728)
    assert not watch.stuck.is_set()

    watch.seen(99.0, 3730)
    assert watch.stuck.is_set(), "it went on when the machine was awake again"


@given(st.lists(st.floats(0, 1e6), max_size=50))
def test_without_a_limit_nothing_is_ever_stuck(times: list[float]) -> None:
    watch = CallWatch(limit_seconds=math.inf, gap_seconds=10)

    for now in sorted(times):
        watch.seen(0.0, now)

    assert not watch.stuck.is_set()
