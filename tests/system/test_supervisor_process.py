import re
import subprocess
import sys
from pathlib import Path

import pytest

from outboxd.demo.http import get
from tests.system.scene import Scene, eventually, free_port, handler

pytestmark = [pytest.mark.system, pytest.mark.timeout(60)]

HEAVY = re.compile(r"^(boto3|botocore|psycopg|psycopg_pool|yoyo|handlers|scenes)(\.|$)")
RSS_LIMIT_BYTES = 45 * 10**6


def test_the_supervisor_imports_no_database_no_aws_and_no_handler(scene: Scene) -> None:
    port = free_port()
    scene.configure(handler("note"), port=port)
    run = [sys.executable, "-P", "-X", "importtime", "-m", "outboxd", "run"]
    # A file: a pipe that nobody empties meanwhile could stop the daemon.
    log = scene.directory / "imports.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*run, "--config", str(scene.configuration)], stdout=output, stderr=output
        )
    try:
        eventually(lambda: (get(f"127.0.0.1:{port}", "/readyz") or (0,))[0] == 200)
        status = Path(f"/proc/{process.pid}/status").read_text()
    finally:
        process.terminate()
        process.wait(timeout=20)

    told = log.read_text().splitlines()
    imported = {line.rpartition("|")[2].strip() for line in told if "|" in line}
    assert "outboxd.supervision.supervisor" in imported
    assert not [module for module in imported if HEAVY.match(module)]
    match = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert match is not None
    assert int(match[1]) * 1024 < RSS_LIMIT_BYTES
