"""The local AWS stand-in in a process of its own, so that the demo cannot hold it up."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from outboxd.demo.errors import DemoError

STOP_SECONDS = 5.0

PLACEHOLDER_CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
"""Stand-ins check none, but the SDK does not send a request without them."""


@contextmanager
def local_aws(log: Path) -> Iterator[str]:
    """A local AWS while the block lasts; its endpoint's URL."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "outboxd.demo.lifeline", "localaws", "--port", "0"],
            # Nothing is ever written to it: its end tells the child that this process is gone.
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            text=True,
            start_new_session=True,
        )
    try:
        yield _announced(process, log)
    finally:
        _stop(process)


def is_aws(endpoint: str) -> bool:
    """Whether the endpoint is Amazon's own, where placeholder credentials must not go."""
    host = urlsplit(endpoint).hostname or ""
    return host.endswith((".amazonaws.com", ".amazonaws.com.cn", ".api.aws"))


def _announced(process: subprocess.Popen[str], log: Path) -> str:
    assert process.stdout is not None
    endpoint = process.stdout.readline().strip()
    if not endpoint:
        raise DemoError(f"the local AWS did not start: {log.read_text(errors='replace')[-2000:]}")
    return endpoint


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
