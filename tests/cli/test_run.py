"""What keeps the daemon from starting is a line, and a code that says whether to try again."""

import os
import socket
import subprocess
import sys
from pathlib import Path

from outboxd.core.exit_codes import ExitCode

CONFIGURATION = """
[http]
port = {port}
[queues.orders]
[[queues.orders.handlers]]
event = "*"
handler = "shop:ship"
name = "ship"
inbox = "off"
"""


def test_a_taken_port_may_be_tried_again(folder: Path) -> None:
    """A predecessor may still be draining; 78 would tell systemd to give up for good."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (folder / "outboxd.toml").write_text(CONFIGURATION.format(port=port))
        result = subprocess.run(
            [sys.executable, "-P", "-m", "outboxd", "run"],
            cwd=folder,
            env={"PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            timeout=30,
        )

    assert (result.returncode, result.stdout) == (ExitCode.UNEXPECTED, "")
    assert result.stderr == (
        f"outboxd: [http] port: {port} of 127.0.0.1 is already in use, perhaps by another outboxd; "
        "stop that process or choose another port (0 takes a free one)\n"
    )
