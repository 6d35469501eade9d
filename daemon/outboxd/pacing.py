"""Sleeps that a stop interrupts, and the one way to stop background work."""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import anyio


async def pause(stopping: anyio.Event, seconds: float) -> None:
    """Sleep for `seconds`, or until `stopping` is set, whichever comes first."""
    with anyio.move_on_after(seconds):
        await stopping.wait()


@asynccontextmanager
async def running(*loops: Callable[[], Coroutine[Any, Any, object]]) -> AsyncIterator[None]:
    """Keep `loops` running exactly as long as the block lasts; an error in one ends the block."""
    async with anyio.create_task_group() as tasks:
        for loop in loops:
            tasks.start_soon(loop)
        try:
            yield
        finally:
            tasks.cancel_scope.cancel()
