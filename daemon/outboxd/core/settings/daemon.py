"""[supervisor], [http] and [logging]: the daemon as a whole."""

from typing import Annotated, Literal

from msgspec import Meta

from outboxd.core.settings.kinds import Count, Limit, Seconds
from outboxd.core.settings.section import Section

Port = Annotated[int, Meta(ge=0, le=65535)]
SocketPath = Annotated[
    str,
    # The kernel's limit for the path of a Unix socket is 107 bytes (unix(7)).
    Meta(pattern=r"^/[!-~]{1,100}\Z", description="an absolute path of at most 101 characters"),
]


class HttpSettings(Section, frozen=True, kw_only=True):
    """The address of /metrics, /healthz, /readyz and the status page."""

    host: Annotated[str, Meta(min_length=1)] = "127.0.0.1"
    port: Port = 9464


class SupervisorSettings(Section, frozen=True, kw_only=True):
    """How child processes are started, watched and stopped."""

    grace_seconds: Seconds = 25.0
    escalation_seconds: Seconds = 5.0
    start_deadline_seconds: Seconds = 60.0
    heartbeat_deadline_seconds: Seconds = 10.0
    heartbeat_interval_seconds: Seconds = 2.0
    metrics_interval_seconds: Seconds = 5.0
    failed_starts: Count = 3
    crashes: Count = 5
    crash_window_seconds: Seconds = 600.0
    backoff_first_seconds: Seconds = 0.5
    backoff_cap_seconds: Seconds = 30.0
    failed_retry_seconds: Seconds = 60.0
    control_socket: SocketPath | None = None


class LoggingSettings(Section, frozen=True, kw_only=True):
    """The log: one line per fact, on standard output."""

    format: Literal["auto", "json", "text"] = "auto"
    level: Literal["debug", "info", "warning", "error"] = "info"
    repeats_per_minute: Limit = 30
    payloads: bool = False
