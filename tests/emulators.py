"""An SQS for a test: our own, and those of others, because one author's stand-in proves little."""

import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from moto.server import ThreadedMotoServer

from tests.localaws.support import running_aws

START_SECONDS = 20.0


@contextmanager
def localaws() -> Iterator[str]:
    """The endpoint of a new localaws, in a thread of its own."""
    with running_aws() as aws:
        yield aws.endpoint


@contextmanager
def moto() -> Iterator[str]:
    """The endpoint of moto, whose queues belong to the process and outlive a server."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    with urllib.request.urlopen(f"{endpoint}/moto-api/reset", data=b""):
        pass
    try:
        yield endpoint
    finally:
        server.stop()


@contextmanager
def roto() -> Iterator[str]:
    """The endpoint of a new roto server."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    binary = Path(sys.executable).parent / "roto-server"
    command = [str(binary), "--ephemeral", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            _wait_for(port)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.kill()


EMULATORS = {"localaws": localaws, "moto": moto, "roto": roto}


def _wait_for(port: int) -> None:
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            assert time.monotonic() < end, "the server does not start"
            time.sleep(0.05)
        else:
            return
