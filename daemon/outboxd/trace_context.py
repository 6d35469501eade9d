"""The trace that what is published now belongs to."""

import sys
from collections.abc import Mapping

from outboxd.core.envelopes.tracing import first_traceparent

HEADER = "traceparent"


def traced_headers(headers: Mapping[str, str], given: str | None = None) -> Mapping[str, str]:
    """The headers with the first valid traceparent of: the one given, their own, the current span.

    Without any they stay as they are. An invalid one is passed over, never refused: it mostly comes
    from a request of somebody else's, and no change should fail because of its trace.
    """
    found = first_traceparent(given, headers.get(HEADER), current_traceparent())
    return headers if found is None else {**headers, HEADER: found}


def current_traceparent() -> str | None:
    """Of the current OpenTelemetry span, as W3C Trace Context (3.2) writes it; None without one.

    OpenTelemetry is never imported here: in a process in which nobody has, there is no span.
    """
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
