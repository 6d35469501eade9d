"""localaws as a process of its own."""

import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

import outboxd

DAEMON = Path(next(iter(outboxd.__path__))).parent
RUN = """
import sys
sys.path.insert(0, sys.argv[1])
from outboxd.localaws.server import run
sys.exit(run("127.0.0.1", int(sys.argv[2])))
"""


def start(port: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", RUN, str(DAEMON), str(port)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_prints_its_endpoint_and_ends_cleanly_on_a_signal(number: signal.Signals) -> None:
    with start(0) as process:
        assert process.stdout is not None
        endpoint = process.stdout.readline().strip()
        with urlopen(f"{endpoint}/_localaws/health") as answer:
            assert answer.status == 200

        process.send_signal(number)
        _, errors = process.communicate(timeout=20)

    assert (process.returncode, errors) == (0, "")


def test_a_port_in_use_is_reported() -> None:
    with start(0) as first:
        assert first.stdout is not None
        port = int(first.stdout.readline().rsplit(":")[-1])
        with start(port) as second:
            _, errors = second.communicate(timeout=20)
        first.terminate()
        first.communicate(timeout=20)

    assert second.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in errors
