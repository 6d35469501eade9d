"""An actor, and a loop beside it."""

from anyio import create_task_group

from outboxd.actors.on_known_tables import Actor


class Accompanied:
    """Runs `companion` exactly as long as `actor`; its errors are those of the process."""

    def __init__(self, actor: Actor, companion: Actor) -> None:
        self._actor = actor
        self._companion = companion

    async def run(self) -> None:
        """Raises what the actor raises, as it is: an exit code depends on it, and a task group
        would wrap it."""
        failure: Exception | None = None
        async with create_task_group() as tasks:
            tasks.start_soon(self._companion.run)
            try:
                await self._actor.run()
            except Exception as error:
                failure = error
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure
