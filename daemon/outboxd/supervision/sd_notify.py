"""Tells systemd about readiness, reloads and stopping (sd_notify(3)); elsewhere it does nothing."""

import logging
import os
import socket
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence

import anyio

log = logging.getLogger(__name__)

FEEDS_PER_INTERVAL = 4
"""Twice would do (sd_watchdog_enabled(3)), but then a single look at a bad moment were fatal."""

MAX_STATUS_BYTES = 1024
"""systemd drops a datagram of more than 4096 bytes as a whole, the READY=1 in it included."""

SEND_AGAIN_SECONDS = 1.0
MAX_UNSENT = 64
"""Of what waits for a manager that stands still the newest are kept: a few minutes of it."""

EXTENSION_SECONDS = 10.0
EXTEND_EVERY_SECONDS = 3.0
"""An extension has to be repeated within its own time."""


class Notifier:
    """Sends datagrams to the service manager's socket; a failure to do so is never fatal."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        address = environ.get("NOTIFY_SOCKET", "")
        # A leading @ stands for the null byte of an abstract socket (unix(7)).
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._watchdog_seconds = _watchdog_seconds(environ)
        self._unsent: deque[str] = deque(maxlen=MAX_UNSENT)

    def ready(self, text: str = "all children ready") -> None:
        """The start, or a reload, is over; `text` is what `systemctl status` shows."""
        self._send(f"READY=1\nSTATUS={_line(text)}")

    def reloading(self) -> None:
        """A reload begins; it ends with the next `ready`, also when nothing was changed. systemd
        tells by the clock whether this answers its signal, and waits for ever if it does not."""
        microseconds = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        self._send(f"RELOADING=1\nMONOTONIC_USEC={microseconds}\nSTATUS=reloading")

    def stopping(self) -> None:
        self._send("STOPPING=1\nSTATUS=draining")

    def status(self, text: str) -> None:
        """One line that `systemctl status` shows."""
        self._send(f"STATUS={_line(text)}")

    async def extend_timeout(self, wanted: Callable[[], bool]) -> None:
        """Ask for more time as long as it is `wanted`; the caller's own deadlines bound it."""
        while wanted():
            self._send(f"EXTEND_TIMEOUT_USEC={EXTENSION_SECONDS * 1e6:.0f}")
            await anyio.sleep(EXTEND_EVERY_SECONDS)

    async def feed_watchdog(self, broken: Callable[[], Sequence[str]]) -> None:
        """Say that the event loop turns and that nothing is `broken`, several times per watchdog
        interval; ends at once when there is no watchdog.

        It must run as a task of the supervisor's own loop: a thread would go on saying so while the
        loop is stuck.
        """
        told: Sequence[str] = ()
        while self._watchdog_seconds > 0:
            problems = broken()
            if not problems:
                self._send("WATCHDOG=1")
            elif problems != told:
                log.error("the watchdog is not fed", extra={"problems": list(problems)})
            told = problems
            await anyio.sleep(self._watchdog_seconds / FEEDS_PER_INTERVAL)

    async def send_again(self) -> None:
        """Repeat, for ever, what the manager had no room for: a READY=1 that it never gets would
        have it end the daemon."""
        while self._address:
            await anyio.sleep(SEND_AGAIN_SECONDS)
            self._flush()

    def _send(self, text: str) -> None:
        if self._address:
            self._unsent.append(text)
            self._flush()

    def _flush(self) -> None:
        """In their order, as far as there is room for them."""
        while self._unsent:
            try:
                with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
                    notify.setblocking(False)
                    notify.sendto(self._unsent[0].encode(), self._address)
            except BlockingIOError:
                return
            except OSError as error:
                facts = {"error": str(error)}
                log.warning("the service manager could not be notified", extra=facts)
            self._unsent.popleft()


def _line(text: str) -> str:
    line = " ".join(text.split())
    if len(line.encode()) <= MAX_STATUS_BYTES:
        return line
    return line.encode()[:MAX_STATUS_BYTES].decode(errors="ignore") + "…"


def _watchdog_seconds(environ: Mapping[str, str]) -> float:
    if environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return 0.0
    microseconds = environ.get("WATCHDOG_USEC", "0")
    return int(microseconds) / 1e6 if microseconds.isdigit() else 0.0
