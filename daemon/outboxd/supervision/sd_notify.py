"""Tells systemd about readiness, status and stopping (sd_notify(3)); elsewhere it does nothing."""

import logging
import os
import socket
from collections.abc import Mapping

import anyio

log = logging.getLogger(__name__)


class Notifier:
    """Sends datagrams to the service manager's socket; a failure to do so is never fatal."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        address = environ.get("NOTIFY_SOCKET", "")
        # A leading @ stands for the null byte of an abstract socket (unix(7)).
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._watchdog_seconds = _watchdog_seconds(environ)

    def ready(self) -> None:
        self._send("READY=1\nSTATUS=all children ready")

    def stopping(self) -> None:
        self._send("STOPPING=1\nSTATUS=draining")

    def status(self, text: str) -> None:
        """One line that `systemctl status` shows."""
        self._send("STATUS=" + text.replace("\n", " "))

    async def feed_watchdog(self) -> None:
        """Say that the event loop turns, twice per watchdog interval; ends at once without one.

        It must run as a task of the supervisor's own loop: a thread would go on saying so while the
        loop is stuck.
        """
        while self._watchdog_seconds > 0:
            self._send("WATCHDOG=1")
            await anyio.sleep(self._watchdog_seconds / 2)

    def _send(self, text: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
                notify.setblocking(False)
                notify.sendto(text.encode(), self._address)
        except OSError as error:
            log.warning("the service manager could not be notified", extra={"error": str(error)})


def _watchdog_seconds(environ: Mapping[str, str]) -> float:
    if environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return 0.0
    microseconds = environ.get("WATCHDOG_USEC", "0")
    return int(microseconds) / 1e6 if microseconds.isdigit() else 0.0
