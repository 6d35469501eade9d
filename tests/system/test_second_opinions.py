"""The shop end to end on the emulators of others, so that one author does not write both sides."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from outboxd.demo.http import get
from tests.system.scene import eventually, free_port

BIN = Path(sys.executable).parent

pytestmark = [pytest.mark.system, pytest.mark.timeout(150)]


@pytest.mark.parametrize(
    "command",
    [["moto_server", "-p"], ["roto-server", "--ephemeral", "--port"]],
    ids=["moto", "roto"],
)
def test_the_shop_loses_and_doubles_nothing_on(command: list[str], tmp_path: Path) -> None:
    with emulator(command, tmp_path / "log") as endpoint:
        demo = subprocess.run(
            [
                *[sys.executable, "-m", "outboxd", "demo"],
                *["--orders", "50", "--exit-when-drained", "--json", "--aws-endpoint", endpoint],
            ],
            capture_output=True,
            text=True,
            check=False,
        )

    assert demo.returncode == 0, demo.stderr
    told = json.loads(demo.stdout.splitlines()[-1])
    assert told["effects_expected"] == 150
    zeros = ("effects_missing", "effects_duplicated", "emails_repeated", "dead_letters")
    assert [told[name] for name in (*zeros, "outbox_backlog", "messages_left")] == [0] * 6


@contextmanager
def emulator(command: list[str], log: Path) -> Iterator[str]:
    port = free_port()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(BIN / command[0]), *command[1:], str(port)], stdout=output, stderr=output
        )
    try:
        eventually(lambda: get(f"127.0.0.1:{port}", "/") is not None)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()
