"""Whether handlers are traced: only where OpenTelemetry is installed and its SDK is configured."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from anyio import to_thread

from outboxd.ports.handling import HandlerRunner
from outboxd.version import __version__

log = logging.getLogger(__name__)

FLUSH_SECONDS = 2.0
"""How long the end of a pool waits for spans that are not exported yet."""


@asynccontextmanager
async def tracing(runner: HandlerRunner, destination: str) -> AsyncIterator[HandlerRunner]:
    """A runner that makes a span of every call, or `runner` itself where nobody would see them.

    Decided once, so that a call costs nothing more without tracing. It has to come after the
    handlers are loaded: their modules may be what configures the SDK. `destination` is the queue as
    SQS knows it.
    """
    try:
        from opentelemetry.trace import NoOpTracerProvider, ProxyTracerProvider, get_tracer_provider
    except ImportError:
        yield runner
        return
    provider = get_tracer_provider()
    # A proxy stands for an SDK that nobody has configured.
    if isinstance(provider, NoOpTracerProvider | ProxyTracerProvider):
        yield runner
        return

    from outboxd.adapters.traced_runner import TracedRunner

    yield TracedRunner(runner, provider.get_tracer("outboxd", __version__), destination)
    # The SDK's own flush at exit never comes: a child does not wait for threads, see child.py.
    await to_thread.run_sync(_flush, provider)


def _flush(provider: object) -> None:
    """The API has no such method, only the SDK's provider. A collector that is away costs its
    spans, never the stop."""
    force_flush = getattr(provider, "force_flush", None)
    if force_flush is None:
        return
    try:
        force_flush(int(FLUSH_SECONDS * 1000))
    except Exception:
        log.warning("spans are lost; they could not be exported", exc_info=True)
