"""[relay]: what goes where, and how the outbox is read, published and kept."""

from typing import Annotated, Literal

from msgspec import Meta

from outboxd.core.settings.kinds import Count, EventGlob, Seconds
from outboxd.core.settings.section import Section

Envelope = Literal["event", "job", "cloudevents"]
"""The form in which an event leaves: docs/envelopes.md."""

Ordering = Literal["aggregate", "none"]
"""Whether the events of an aggregate leave one after another, or as they come."""

OnExhausted = Literal["skip", "block"]
"""What becomes of an event that is refused or out of attempts: it is dead and its aggregate goes
on, or it stays first in its aggregate's line until an operator decides."""

SourceReference = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9._~:/?#@!$&'()*+,;=%-]{1,256}\Z",
        description="a URI or a path, as CloudEvents want for their source",
    ),
]


class RouteSettings(Section, frozen=True, kw_only=True):
    """Events whose type matches the glob go to every destination of `to`, such as
    "sqs:<queue>". core.destinations says what else there is."""

    events: EventGlob
    to: Annotated[tuple[str, ...], Meta(min_length=1, max_length=16)]
    aggregate_type: EventGlob = "*"
    envelope: Envelope = "event"
    ordering: Ordering = "aggregate"
    on_exhausted: OnExhausted = "skip"


class RelaySettings(Section, frozen=True, kw_only=True):
    """How the outbox is read, published and kept."""

    routes: tuple[RouteSettings, ...] = ()
    on_unrouted: Literal["hold", "dead", "drop"] = "hold"
    cloudevents_source: SourceReference = "outboxd"
    retention_days: Annotated[float, Meta(ge=0, le=36_500)] = 7.0
    poll_min_seconds: Seconds = 0.02
    poll_max_seconds: Seconds = 1.0
    wake_up: bool = False
    sleep_max_seconds: Seconds = 30.0
    lease_seconds: Seconds = 15.0
    renew_seconds: Seconds = 3.0
    read_per_bucket: Annotated[int, Meta(ge=1, le=10_000)] = 20
    packs_in_flight: Annotated[int, Meta(ge=1, le=64)] = 8
    unsettled_limit: Annotated[int, Meta(ge=10, le=1_000_000)] = 500
    max_attempts: Count = 20
    backoff_first_seconds: Seconds = 0.5
    backoff_cap_seconds: Seconds = 60.0
