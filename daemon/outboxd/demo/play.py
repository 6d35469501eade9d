"""One run of the demo: open the shop, watch, and count what became of everything."""

import logging
import threading
import time
from collections.abc import Mapping

import msgspec

from outboxd.core.errors import Unavailable
from outboxd.demo import mishaps
from outboxd.demo.aws import is_aws
from outboxd.demo.counting import Count
from outboxd.demo.drained import DrainWatch
from outboxd.demo.killer import Killer, killing
from outboxd.demo.observation import Observation, observer_of
from outboxd.demo.options import DemoOptions
from outboxd.demo.repetitions import explain
from outboxd.demo.scene import Scene, Stopped, scene
from outboxd.demo.shopping import Shop, shopping
from outboxd.demo.summary import Summary, summarize
from outboxd.demo.view import View

logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.5
COUNT_SHARE = 5
"""Counting takes long when orders are many, and is then done less often: for a fifth of the time
at most. What else there is to see is looked at every LOOK_SECONDS."""


def play(options: DemoOptions, view: View, stopping: threading.Event) -> Summary | None:
    """Run the demo until it is over or `stopping`; None if it was stopped before it began.

    Everything that it started is gone when it returns or raises.
    """
    try:
        with scene(options, view.say, stopping.is_set) as running:
            view.opened(running)
            return _Run(options, running, view, stopping).to_its_end()
    except Stopped:
        return None


class _Run:
    """The part of a run in which the shop is open."""

    def __init__(
        self,
        options: DemoOptions,
        running: Scene,
        view: View,
        stopping: threading.Event,
    ) -> None:
        self._options = options
        self._scene = running
        self._observer = observer_of(running)
        self._view = view
        self._stopping = stopping
        self._began_at = time.monotonic()
        self._count_at = self._began_at
        self._drain = DrainWatch()
        self._seen: Observation | None = None

    def to_its_end(self) -> Summary:
        options, supervisor = self._options, self._scene.supervisor
        with (
            killing(supervisor.pid, options.kill_every_seconds, options.seed) as killer,
            shopping(
                self._scene.storefront,
                orders=options.orders,
                rate=options.rate,
                seed=options.seed,
            ) as shop,
        ):
            self._watch(shop, killer)
        seconds = time.monotonic() - self._began_at
        restarts = {child.name: child.restarts for child in self._observer.children()}
        self._view.say("stopping")
        exit_code = supervisor.stop()
        kills = killer.kills.by_role if killer is not None else {}
        return summarize(
            self._explained(self._observer.look().count, kills),
            orders_wanted=options.orders if options.exit_when_drained else None,
            restarts=restarts,
            kills=kills,
            exact_queues=not is_aws(self._scene.settings.aws.endpoint_url or ""),
            seconds=seconds,
            supervisor_exit_code=exit_code,
        )

    def _explained(self, count: Count, kills: Mapping[str, int]) -> Count:
        flows = explain(
            count.flows,
            settings=self._scene.settings,
            kills=kills,
            answers_lost=mishaps.answers_lost(self._scene.partners),
        )
        return msgspec.structs.replace(count, flows=flows)

    def _watch(self, shop: Shop, killer: Killer | None) -> None:
        """Look again and again until the end of the run."""
        pause = 0.0
        while not self._stopping.wait(pause):
            counted = self._look()
            if self._seen is not None:
                self._view.show(self._seen, killer.kills if killer is not None else None)
                if counted and self._over(self._seen, shop, killer):
                    return
            if self._ended_early():
                return
            pause = LOOK_SECONDS

    def _look(self) -> bool:
        """See what is to be seen now; whether everything was counted, and not only looked at.

        While the database or the queues are away, which the daemon must outlive, nothing is.
        """
        try:
            if self._seen is not None and time.monotonic() < self._count_at:
                self._seen = self._observer.look_again(self._seen)
                return False
            self._seen = self._observer.look()
        except Unavailable as error:
            logger.warning("not everything can be counted", extra={"error": str(error)})
            return False
        self._count_at = self._seen.at + COUNT_SHARE * self._seen.counting_seconds
        return True

    def _over(self, observation: Observation, shop: Shop, killer: Killer | None) -> bool:
        """Whether a run that ends by itself has nothing left to do, and nothing moves any more."""
        done = shop.closed and observation.count.complete
        if not self._options.exit_when_drained:
            return False
        if done and killer is not None:
            killer.work_done()
        killed_enough = killer is None or killer.satisfied
        return self._drain.look(
            observation.at, quiet=done and killed_enough and observation.count.quiet
        )

    def _ended_early(self) -> bool:
        if (words := self._scene.supervisor.last_words()) is not None:
            self._view.say(words)
            return True
        deadline = self._options.deadline_seconds
        if self._options.exit_when_drained and time.monotonic() - self._began_at > deadline:
            self._view.say(f"not drained after {deadline:g} s")
            return True
        return False
