"""The stand-in says where it listens, serves, and stops when it is told to."""

import http.client
import signal
import socket
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from outboxd.core.exit_codes import ExitCode
from tests.cli.conftest import Cli


def test_it_serves_at_the_address_that_it_prints_until_sigterm() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "outboxd", "localaws", "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            url = urlsplit(process.stdout.readline().strip())
            connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=10)
            connection.request("GET", "/")
            answer = connection.getresponse()
            answer.read()
            connection.close()
        finally:
            process.send_signal(signal.SIGTERM)
        code = process.wait(10)

    assert answer.status
    assert code == ExitCode.OK


def test_an_address_in_use_is_one_line(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])

        code, out, err = cli("localaws", "--port", port)

    assert (code, out) == (ExitCode.UNEXPECTED, "")
    assert port in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("port", ["-1", "65536", "http", "1.5"])
def test_a_wrong_port_is_a_usage_error(cli: Cli, port: str) -> None:
    code, _, err = cli("localaws", f"--port={port}")

    assert code == ExitCode.USAGE
    assert f"'{port}' is no port from 0 to 65535" in err
