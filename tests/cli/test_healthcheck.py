"""A container asks in milliseconds, and gets one line and one exit code."""

import http.server
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from outboxd.core.exit_codes import ExitCode
from tests.cli.conftest import Cli


class Daemon(http.server.BaseHTTPRequestHandler):
    """Well at /healthz only."""

    def do_GET(self) -> None:
        well = self.path == "/healthz"
        self.send_response(200 if well else 503)
        self.end_headers()
        self.wfile.write(b"ok\n" if well else b"relay is starting\nmore\n")

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


def test_a_daemon_that_is_well(cli: Cli, daemon: str) -> None:
    assert cli("healthcheck", "--url", f"{daemon}/healthz") == (0, "healthy: ok\n", "")


def test_a_daemon_that_is_not_ready_says_why(cli: Cli, daemon: str) -> None:
    url = f"{daemon}/readyz"

    assert cli("healthcheck", "--url", url) == (
        1,
        "",
        f"unhealthy: {url} answers 503 relay is starting\n",
    )


def test_nobody_listens(cli: Cli, unused_port: int) -> None:
    url = f"http://127.0.0.1:{unused_port}/healthz"

    assert cli("healthcheck", "--url", url) == (
        1,
        "",
        f"unhealthy: {url}: Connection refused\n",
    )


def test_a_daemon_that_hangs_is_not_waited_for(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}/healthz"

        code, _, err = cli("healthcheck", "--url", url, "--timeout-seconds", "0.05")

    assert (code, err) == (1, f"unhealthy: {url}: timed out\n")


def test_something_that_speaks_no_http(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as strange:

        def answer() -> None:
            connection, _ = strange.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"SSH-2.0-OpenSSH\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        url = f"http://127.0.0.1:{strange.getsockname()[1]}/"
        code, _, err = cli("healthcheck", "--url", url)
        thread.join()

    assert code == 1
    assert err == f"unhealthy: {url}: SSH-2.0-OpenSSH\n"


@pytest.mark.parametrize(
    "argv",
    [
        ["--url", "https://h/"],
        ["--url", "h:1"],
        ["--url", "http://h:99999/"],
        ["--timeout-seconds", "0"],
        ["--timeout-seconds", "soon"],
    ],
)
def test_a_wrong_argument_is_a_usage_error(argv: list[str], cli: Cli) -> None:
    assert cli("healthcheck", *argv).code == ExitCode.USAGE


def test_nothing_heavy_is_imported() -> None:
    program = (
        "import sys; from outboxd.cli.main import main; main(['healthcheck']);"
        "print(sorted({'anyio', 'boto3', 'psycopg', 'msgspec', 'starlette'} & set(sys.modules)))"
    )

    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True
    )

    assert result.stdout.splitlines()[-1] == "[]"
