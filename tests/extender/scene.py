"""An extender over a scripted SQS, and everything that it was asked and told."""

import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

import anyio
from prometheus_client import CollectorRegistry

from outboxd.actors.extender import Extender, ExtenderSettings
from outboxd.adapters.metrics.extender import ExtenderMetrics
from outboxd.channels.mailbox import Counterpart, open_mailbox
from outboxd.channels.protocol import Address, Drain, Hold, Lease, Message, Ready, Resume
from outboxd.core.clock import boottime
from outboxd.core.errors import OutageKind, Unavailable
from outboxd.core.retry import Backoff
from outboxd.ports.progress import Progress
from outboxd.ports.visibility import BATCH, Extended, Timeout, TimeoutResult

POOL = Address("consumer:orders/1", 1)
NEIGHBOUR = Address("consumer:orders/2", 1)
QUICK = ExtenderSettings(retry=Backoff(first_seconds=0.01, cap_seconds=0.05))

M = TypeVar("M", bound=Message)


class ScriptedSqs:
    """Keeps `ports.visibility.Visibility`, and does what the test says instead of succeeding.

    `answers` are given once each, by receipt handle; `outages` fail whole calls, by queue; a call
    for a queue in `hanging` returns when the test sets its event.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, int]]] = []
        self.answers: dict[str, list[TimeoutResult]] = {}
        self.outages: dict[str, list[OutageKind]] = {}
        self.hanging: dict[str, anyio.Event] = {}
        self.during_call: Callable[[], None] = lambda: None
        self._news = anyio.Event()

    async def change(self, queue: str, timeouts: Sequence[Timeout]) -> Sequence[TimeoutResult]:
        assert 0 < len(timeouts) <= BATCH
        self.calls.append((queue, {each.receipt_handle: each.seconds for each in timeouts}))
        self._news.set()
        self._news = anyio.Event()
        self.during_call()
        if queue in self.hanging:
            await self.hanging[queue].wait()
        if self.outages.get(queue):
            kind = self.outages[queue].pop(0)
            raise Unavailable(f"change on queue {queue}: {kind}", kind)
        return [self._answer(each.receipt_handle) for each in timeouts]

    def _answer(self, receipt_handle: str) -> TimeoutResult:
        script = self.answers.get(receipt_handle)
        return script.pop(0) if script else Extended()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until calls have made this true."""
        with anyio.fail_after(20):
            while not holds():
                await self._news.wait()

    def asked(self, queue: str = "orders") -> list[tuple[str, int]]:
        """Receipt handle and seconds of every change that was asked for, in order."""
        return [
            entry for called, entries in self.calls if called == queue for entry in entries.items()
        ]


class Scene:
    """The extender's surroundings in one test."""

    def __init__(self, sqs: ScriptedSqs, counterpart: Counterpart) -> None:
        self.sqs = sqs
        self.progress = Progress()
        self.registry = CollectorRegistry()
        self.ended = anyio.Event()
        self._counterpart = counterpart

    async def tell(self, message: Message) -> None:
        await self._counterpart.tell(message)

    async def hold(self, *leases: Lease, owner: Address = POOL) -> None:
        await self.tell(Hold(owner, leases))

    async def nudge(self) -> None:
        """Have the extender look at its clock."""
        await self.tell(Resume("orders"))

    async def heard(self) -> Message:
        with anyio.fail_after(20):
            return await self._counterpart.heard()

    async def drain(self, seconds: float = 20.0) -> None:
        await self.tell(Drain(boottime() + seconds))
        with anyio.fail_after(20):
            await self.ended.wait()

    def hang_up(self) -> None:
        self._counterpart.close()

    def metric(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"outboxd_{name}", labels)


@asynccontextmanager
async def extending(
    sqs: ScriptedSqs,
    *,
    clock: Callable[[], float] = boottime,
    settings: ExtenderSettings = QUICK,
) -> AsyncIterator[Scene]:
    """An extender that runs, and is ready, as long as the block."""
    mailbox, counterpart = open_mailbox()
    scene = Scene(sqs, counterpart)
    observer = ExtenderMetrics(scene.registry, ["orders", "mails"])
    extender = Extender(sqs, settings, observer, scene.progress, mailbox, clock=clock)

    async def run() -> None:
        await extender.run()
        scene.ended.set()

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            assert await scene.heard() == Ready()
            yield scene
            tasks.cancel_scope.cancel()
    finally:
        mailbox.close()
        counterpart.close()


_tokens = itertools.count(1)


def a_lease(
    handle: str,
    *,
    left: float = 10.0,
    queue: str = "orders",
    now: float | None = None,
    permitted: float = 600.0,
    visibility_seconds: int = 30,
) -> Lease:
    """A lease with `left` seconds to its end; below half of its timeout it is due at once."""
    now = boottime() if now is None else now
    return Lease(
        token=next(_tokens),
        queue=queue,
        message_id=f"message of {handle}",
        receipt_handle=handle,
        received_at=now + left - visibility_seconds,
        visibility_seconds=visibility_seconds,
        permitted_until=now + permitted,
    )
