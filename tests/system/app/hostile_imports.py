"""What a handler's module may do at its import; which of it, the environment says."""

import os
import signal
import time
from typing import Any

from outboxd import Event

match os.environ.get("HOSTILE_IMPORT"):
    case "sleep":
        time.sleep(90)
    case "raise":
        raise RuntimeError("no such table: customers")
    case "exit":
        os._exit(0)
    case "hang":
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        while True:
            pass
    case "ignore":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    case _:
        pass


def do_nothing(event: Event[Any]) -> None:
    pass
