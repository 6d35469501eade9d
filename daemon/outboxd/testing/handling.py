"""Calls a handler as the daemon would, and says what would become of its message."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from outboxd.core.outcomes import Outcome
from outboxd.core.settings import InboxMode
from outboxd.testing.given import Given
from outboxd.testing.trial import Trial

Handler: TypeAlias = Callable[..., Any]


def run(
    handler: Handler,
    event: Given | Sequence[Given],
    *,
    tx: Any = None,
    options: Mapping[str, Any] | None = None,
    attempt: int = 1,
    max_attempts: int = 5,
    timeout_seconds: float = 30.0,
    name: str | None = None,
    schema: str = "outboxd",
    inbox: InboxMode = "transaction",
) -> Outcome:
    """What becomes of the event's message when this handler is called for the `attempt`-th time.

    The handler is a function, an object, or a class that is constructed with `options` first. The
    payload goes through JSON into the annotated type. `name` is the handler's name in the
    configuration, if it looks at it.

    `tx` is the handler's transaction: a psycopg connection, on which the handler's changes stay
    only if it ends in Done: within the transaction that is open, or committed if none is. Anything
    else, such as a fake, is handed over as it is. `context.publish` needs a `tx`, and outboxd's
    tables in `schema`. No inbox mark is looked for or left.

    A list of events is a batch, for a handler that takes batches; its outcome is that of the whole.
    The daemon calls such a handler with each event alone when the whole has failed.

    With `inbox="own"` the handler brings its own connection, and `context.claim` makes a mark on
    it. Its outcome is told as if what it claimed were committed if and only if it ends in Done.

    The delay of a Retry after a failure is the longest that the daemon would choose; it takes up to
    half off, by chance.

    Raises SettingsError if the daemon would not start with such a handler, TypeError for a `tx`
    that is missing or of the wrong kind, and PublishRefused for a payload that JSON cannot hold.
    """
    trial = Trial(
        handler, event, tx, options, attempt, max_attempts, timeout_seconds, name, schema, inbox
    )
    if not trial.asynchronous:
        return trial.run()
    _check_no_loop()
    # With a factory of its own the runner leaves the thread's current event loop alone.
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        return runner.run(trial.run_async())


async def run_async(
    handler: Handler,
    event: Given | Sequence[Given],
    *,
    tx: Any = None,
    options: Mapping[str, Any] | None = None,
    attempt: int = 1,
    max_attempts: int = 5,
    timeout_seconds: float = 30.0,
    name: str | None = None,
    schema: str = "outboxd",
    inbox: InboxMode = "transaction",
) -> Outcome:
    """`run` for tests that are asynchronous themselves, and for a `tx` that is; a synchronous
    handler is called in a thread, as in the daemon."""
    trial = Trial(
        handler, event, tx, options, attempt, max_attempts, timeout_seconds, name, schema, inbox
    )
    return await trial.run_async()


def _check_no_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("an event loop is running here: use `await run_async(...)`")
