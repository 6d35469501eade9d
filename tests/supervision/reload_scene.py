"""A running supervisor of scripted children whose configuration can be exchanged."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest
from msgspec.structs import replace

from outboxd.core.settings import (
    HandlerSettings,
    QueueSettings,
    RelaySettings,
    Settings,
)
from outboxd.supervision.process import Spawn
from outboxd.supervision.sd_notify import Notifier
from outboxd.supervision.supervisor import NotReloaded
from tests.supervision.scene import (
    QUICK,
    Configured,
    Facts,
    Run,
    a_configured_supervisor,
)

HANDLER = HandlerSettings(event="*", handler="a:b", name="b", timeout_seconds=1)
QUEUE = QueueSettings(handlers=(HANDLER,), wait_seconds=0)
SETTINGS = Settings(
    supervisor=QUICK, relay=RelaySettings(), queues={"polite": QUEUE, "kind": QUEUE}
)
POLITE, KIND = "consumer:polite/1", "consumer:kind/1"


def with_queues(**queues: QueueSettings) -> Settings:
    return replace(SETTINGS, queues={**SETTINGS.queues, **queues})


class Scene:
    """A running supervisor, its source and its facts."""

    def __init__(self, spawn: Spawn, settings: Settings, notifier: Notifier | None) -> None:
        self.facts = Facts()
        self.source = Configured(settings)
        self.supervisor = a_configured_supervisor(self.facts, spawn, self.source, notifier)
        self.run = Run(self.supervisor)

    def starts(self) -> list[str]:
        """Which children have been started since all were ready for the first time."""
        history = self.facts.history[self.facts.history.index("ready") :]
        return [fact.removesuffix(" started") for fact in history if fact.endswith(" started")]

    async def refused(self) -> str:
        with pytest.raises(NotReloaded) as refusal:
            await self.supervisor.reload(everything=False)
        return str(refusal.value)


@asynccontextmanager
async def running(
    spawn: Spawn, settings: Settings = SETTINGS, notifier: Notifier | None = None
) -> AsyncIterator[Scene]:
    scene = Scene(spawn, settings, notifier)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(scene.run)
        await scene.facts.until(lambda f: "ready" in f.history)
        yield scene
        scene.supervisor.stop("test")
