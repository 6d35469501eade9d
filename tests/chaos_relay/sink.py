"""A queue that remembers what it accepted, from whom and in which order, and fails as it is told.

SQS as far as a relay needs it. The project's own stand-in would not do: it does not tell which
process a message came from, nor whether its sender has heard of it, and both decide what may be
repeated.
"""

import json
import random
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

ENTRY_FAILURES = 0.1
LONGEST_CALL_SECONDS = 0.02
"""Without an outage each call takes as long as chance says, up to this."""

HANG_SECONDS = 8.0
"""Above the relay's timeout for reading."""

_SENDER = re.compile(r"\bapp/(\S+)")


class Outage(StrEnum):
    """How a destination can be away as a whole."""

    DENIED = "AccessDenied"
    MISSING = "QueueDoesNotExist"
    BROKEN = "ServiceUnavailable"
    HANGING = "accepted, no answer"
    RESET = "accepted, connection reset"


class Arrival(NamedTuple):
    """One acceptance. `answered` is False if its sender cannot know of it."""

    event: str
    aggregate: str
    position: int
    sender: str
    answered: bool


class Book:
    """Everything that was accepted, in order."""

    def __init__(self, dice: random.Random) -> None:
        self._lock = threading.Lock()
        self._dice = dice
        self.arrivals: list[Arrival] = []
        self.failed_entries = 0
        self.refused_calls = 0
        self.outage: Outage | None = None

    def answered(self, sender: str | None = None) -> set[str]:
        """The events that were accepted, from that sender or from anybody, and said to be."""
        with self._lock:
            arrivals = list(self.arrivals)
        return {
            each.event
            for each in arrivals
            if each.answered and (sender is None or each.sender == sender)
        }

    def pause(self) -> float:
        with self._lock:
            return self._dice.random() * LONGEST_CALL_SECONDS

    def accept(
        self, sender: str, entries: list[dict[str, Any]], *, answered: bool
    ) -> dict[str, Any]:
        """Take nine in ten of the entries; the answer that says so."""
        successful, failed = [], []
        with self._lock:
            for entry in entries:
                if self._dice.random() < ENTRY_FAILURES:
                    self.failed_entries += 1
                    failed.append(
                        {"Id": entry["Id"], "Code": "InternalError", "SenderFault": False}
                    )
                    continue
                event = json.loads(entry["MessageBody"])
                self.arrivals.append(
                    Arrival(
                        event["id"],
                        event["aggregate_id"],
                        event["payload"]["position"],
                        sender,
                        answered,
                    )
                )
                successful.append({"Id": entry["Id"], "MessageId": event["id"]})
        return {"Successful": successful, "Failed": failed}


@contextmanager
def sink(dice: random.Random) -> Iterator[tuple[Book, str]]:
    """A sink, and the URL of its endpoint."""
    book = Book(dice)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(book))
    server.daemon_threads = True
    serving = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
    serving.start()
    try:
        yield book, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def _handler(book: Book) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            found = _SENDER.search(self.headers["User-Agent"])
            sender = found.group(1) if found else "unknown"
            if not self.headers["X-Amz-Target"].endswith(".SendMessageBatch"):
                self._answer(_about_the_queue(self.headers["Host"]))
                return
            self._deal_with(sender, request["Entries"])

        def _deal_with(self, sender: str, entries: list[dict[str, Any]]) -> None:
            time.sleep(book.pause())
            match book.outage:
                case None:
                    answer = book.accept(sender, entries, answered=True)
                case Outage.HANGING | Outage.RESET as outage:
                    book.accept(sender, entries, answered=False)
                    if outage is Outage.HANGING:
                        time.sleep(HANG_SECONDS)
                    self.close_connection = True
                    return
                case Outage.BROKEN as outage:
                    book.refused_calls += 1
                    self._answer(_error(outage), 503)
                    return
                case outage:
                    book.refused_calls += 1
                    self._answer(_error(outage), 400)
                    return
            self._answer(answer)

        def _answer(self, content: dict[str, Any], status: int = 200) -> None:
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/x-amz-json-1.0")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def handle(self) -> None:
            try:
                super().handle()
            except (OSError, ValueError):  # the sender was killed, perhaps in mid-sentence
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            """Nothing: there are thousands of calls."""

    return Handler


def _about_the_queue(host: str) -> dict[str, Any]:
    """To GetQueueUrl and GetQueueAttributes alike: each finds what it asked for."""
    url = f"http://{host}/000000000000/events"
    return {"QueueUrl": url, "Attributes": {"MaximumMessageSize": "1048576"}}


def _error(outage: Outage) -> dict[str, Any]:
    return {"__type": f"com.amazonaws.sqs#{outage}", "message": "as the schedule says"}
