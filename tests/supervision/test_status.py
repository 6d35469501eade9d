"""The status of a supervisor whose children live, fail and stop."""

import logging
import signal

import anyio
import pytest

from outboxd.channels.protocol import Sample
from outboxd.core.clock import boottime
from outboxd.supervision.health import SupervisorHealth
from outboxd.supervision.process import Spawn
from outboxd.supervision.status import collecting, names
from outboxd.supervision.status.collecting import StatusWatch
from tests.supervision.scene import Facts, Run, a_supervisor, spec

pytestmark = pytest.mark.filterwarnings("ignore:.*os.fork:DeprecationWarning")

DEPTH = {"queue": "orders", "state": "visible"}


async def test_a_running_daemon_is_told_from_what_was_heard(spawn: Spawn) -> None:
    facts = Facts()
    supervisor = a_supervisor(facts, spawn, spec("relay"))
    lines: list[Sample] = []
    clock = [100.0]
    watch = StatusWatch(
        supervisor,
        SupervisorHealth(supervisor),
        lambda: lines,
        clock=lambda: clock[0],
        wall_clock=lambda: 1000.0 + clock[0],
    )
    assert watch.now().health == "starting"

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Run(supervisor))
        await facts.until(lambda f: "relay heartbeat" in f.history and "ready" in f.history)
        clock[0] += 10
        lines = [
            Sample(names.PUBLISHED, {"outbox": "default", "destination": "sqs:a"}, 50.0),
            Sample(names.DIED, {"outbox": "default"}, 2.0),
        ]
        watch.step()
        status = watch.now()
        assert status.health == "healthy"
        (relay,) = status.children
        assert (relay.name, relay.state, relay.restarts) == ("relay", "ready", 0)
        assert relay.pid is not None
        assert relay.rss_bytes is not None
        assert status.outbox is not None
        assert status.outbox.published_per_second == 5.0
        assert status.outbox.pending is None
        assert [(each.text, each.count) for each in status.errors] == [("an event was given up", 2)]
        assert watch.now() is status  # for everybody who looks within the same second
        supervisor.stop("test")
        clock[0] += 1
        assert watch.now().health == "stopping"


async def test_a_process_that_stands_still_is_told_long_before_it_is_killed(spawn: Spawn) -> None:
    facts, name = Facts(), "consumer:polite/1"
    supervisor = a_supervisor(facts, spawn, spec("extender"), spec(name, 60))
    ahead = [0.0]
    watch = StatusWatch(
        supervisor, SupervisorHealth(supervisor), lambda: (), clock=lambda: boottime() + ahead[0]
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Run(supervisor))
        await facts.until(lambda f: "ready" in f.history and f"{name} heartbeat" in f.history)
        assert watch.now().health == "healthy"
        stopped = supervisor.life(name).current
        assert stopped is not None
        stopped.process.signal(signal.SIGSTOP)
        ahead[0] = 20.0
        extender = supervisor.life("extender").current
        assert extender is not None
        extender.heard_at = boottime() + 20.0

        status = watch.now()

        assert status.health == "degraded"
        (problem,) = status.problems
        assert problem.level == "warning"
        assert problem.text.startswith(f"{name} has said nothing for 20")
        stopped.kill()
        supervisor.stop("test")


def test_a_queues_depth_is_null_until_somebody_has_counted(spawn: Spawn) -> None:
    supervisor = a_supervisor(Facts(), spawn, spec("consumer:orders/1"))
    lines: list[Sample] = []
    clock = [0.0]
    watch = StatusWatch(
        supervisor, SupervisorHealth(supervisor), lambda: lines, clock=lambda: clock[0]
    )

    assert watch.now().queues[0].visible is None
    clock[0] = 2.0
    lines = [Sample(names.DEPTH, DEPTH, 7.0)]
    assert watch.now().queues[0].visible == 7


async def test_a_step_that_fails_is_logged_and_the_next_is_taken(
    spawn: Spawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collecting, "STEP_SECONDS", 0.001)
    supervisor = a_supervisor(Facts(), spawn, spec("relay"))
    asked = anyio.Event()
    looks = 0

    def lines() -> list[Sample]:
        nonlocal looks
        looks += 1
        if looks == 1:
            raise RuntimeError("no metrics today")
        asked.set()
        return []

    watch = StatusWatch(supervisor, SupervisorHealth(supervisor), lines)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch.run)
        with anyio.fail_after(20):
            await asked.wait()
        tasks.cancel_scope.cancel()

    assert [each.text for each in watch.now().errors] == [
        "the status cannot be kept RuntimeError: no metrics today"
    ]
    assert not logging.getLogger("outboxd").handlers
