"""The status page in a terminal."""

import http.server
import json
import subprocess
import sys
import threading
from collections.abc import Iterator

import msgspec
import pytest

from outboxd.cli.main import INTERRUPTED
from outboxd.cli.status_text import bars, status_text
from outboxd.core.exit_codes import ExitCode
from outboxd.core.figures import UNKNOWN
from outboxd.supervision.status.model import QueueHistory, Status, Trouble
from outboxd.version import __version__
from tests.cli.conftest import Cli
from tests.supervision.status_scene import a_child, a_handler, a_queue, a_status, an_outbox

DEGRADED = a_status(
    children=(a_child(), a_child("consumer:orders/1", "backoff", pid=None, rss_bytes=None)),
    outbox=an_outbox(pending=12345),
    queues=(
        a_queue(
            visible=None,
            dead_letters=2,
            history=QueueHistory(visible=(1.0, 8.0), handled_per_second=(), p95_seconds=()),
        ),
    ),
    handlers=(a_handler(failed_share=0.02),),
    errors=(
        Trouble(
            at=1.0,
            seconds_ago=61.0,
            level="error",
            source="orders",
            text="dead letter of ship: crash",
            count=3,
            look="outboxd dlq list orders",
        ),
    ),
)


def document(status: Status) -> dict[str, object]:
    return dict(json.loads(msgspec.json.encode(status)))


BODIES = {
    "/status.json": msgspec.json.encode(a_status()),
    "/degraded": msgspec.json.encode(DEGRADED),
    "/strange": b"[1]",
    "/text": b"hello",
    "/another": b'{"health": "healthy"}',
    "/odd": msgspec.json.encode({**document(a_status()), "problems": 1}),
}


class Daemon(http.server.BaseHTTPRequestHandler):
    """Has a status, and only that."""

    def do_GET(self) -> None:
        body = BODIES.get(self.path)
        self.send_response(404 if body is None else 200)
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, format: str, *args: object) -> None:
        """Not to the test's output."""


@pytest.fixture
def daemon() -> Iterator[str]:
    with http.server.HTTPServer(("127.0.0.1", 0), Daemon) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_a_healthy_daemon_is_0_and_begins_with_that_word(cli: Cli, daemon: str) -> None:
    code, out, err = cli("status", "--url", daemon)

    assert (code, err) == (ExitCode.OK, "")
    assert out.splitlines()[:2] == [
        "✓ Healthy  All is at work.",
        "outboxd 1.2.3 on shop-1, up for 3 min 20 s",
    ]


def test_any_other_is_1_and_says_why(cli: Cli, daemon: str) -> None:
    code, out, _ = cli("status", "--url", f"{daemon}/degraded")

    assert code == ExitCode.UNEXPECTED
    lines = [" ".join(line.split()) for line in out.splitlines()]
    for line in (
        "! Degraded It works, with 1 problem.",
        "warning consumer:orders/1 has ended, and waits for its next start",
        "note 2 dead letters wait for a person: orders (outboxd dlq list orders)",
        "waiting 12,345 █",
        f"orders {UNKNOWN} █ 0 0/s {UNKNOWN} 0 2",
        f"ship orders 0 0/s 2 % {UNKNOWN} 0 0",
        f"consumer:orders/1 backoff 1 min 15 s {UNKNOWN} {UNKNOWN} 0 0",
        "1 min 1 s ago orders dead letter of ship: crash (x 3) (outboxd dlq list orders)",
    ):
        assert line in lines


def test_for_programs_it_is_the_document_itself(cli: Cli, daemon: str) -> None:
    code, out, _ = cli("status", "--url", daemon, "--json")

    assert code == ExitCode.OK
    assert json.loads(out) == document(a_status())


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/nothing", "answers 404"),
        ("/strange", "is not the status of an outboxd"),
        ("/text", "is not the status of an outboxd"),
        ("/another", f"is not the status of an outboxd {__version__} (it has no 'summary')"),
        ("/odd", f"is not the status of an outboxd {__version__} ('int' object is not iterable)"),
    ],
)
def test_what_is_no_status_is_a_line(cli: Cli, daemon: str, path: str, why: str) -> None:
    assert cli("status", "--url", f"{daemon}{path}") == (
        1,
        "",
        f"no status: {daemon}{path} {why}\n",
    )


def test_nobody_listens(cli: Cli, unused_port: int) -> None:
    url = f"http://127.0.0.1:{unused_port}"

    assert cli("status", "--url", url) == (1, "", f"no status: {url}: Connection refused\n")


def test_a_watch_goes_on_until_it_is_interrupted(
    cli: Cli, daemon: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("outboxd.cli.status.time.sleep", wait)

    code, out, _ = cli("status", "--watch", "--every-seconds", "0.5", "--url", daemon)

    assert (code, waits) == (INTERRUPTED, [0.5, 0.5, 0.5])
    assert out.count("Healthy") == 3
    assert "\x1b" not in out  # no terminal, so nothing is redrawn


def test_nothing_that_a_daemon_says_moves_the_cursor() -> None:
    hostile = "\x1b[2J\x07evil\u202e"
    status = a_status(
        broken=(hostile,),
        children=(a_child(hostile, "failed"),),
        queues=(a_queue(hostile, blocked_by=(hostile,)),),
        handlers=(a_handler(hostile, hostile),),
    )

    text = status_text(document(status), colour=False)

    assert all(each.isprintable() or each == "\n" for each in text)


def test_on_a_terminal_the_word_has_its_colour() -> None:
    text = status_text(document(a_status()), colour=True)

    assert text.startswith("\x1b[32m✓ Healthy\x1b[0m")


def test_15_minutes_are_15_bars() -> None:
    assert bars([0.0] * 90) == "▁" * 15
    assert bars([float(step) for step in range(90)])[-1] == "█"
    assert bars([None, 4.0]) == "█"
    assert bars([]) == ""


def test_nothing_heavy_is_imported() -> None:
    program = (
        "import sys; from outboxd.cli.main import main; main(['status']);"
        "print(sorted({'anyio', 'boto3', 'psycopg', 'msgspec', 'starlette'} & set(sys.modules)))"
    )

    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True
    )

    assert result.stdout.splitlines()[-1] == "[]"
