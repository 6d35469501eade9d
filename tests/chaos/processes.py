"""Children that outlived their supervisor, as the operating system shows them."""

import time
from collections.abc import Collection
from pathlib import Path

from outboxd.demo.processes import CHILD_MODULE

GONE_SECONDS = 10.0
"""An orphan ends itself five seconds after its supervisor."""


def left_behind(supervisors: Collection[int]) -> list[int]:
    """Processes that one of these supervisors has started and that do not end by themselves."""
    deadline = time.monotonic() + GONE_SECONDS
    while found := _children_ever(supervisors):
        if time.monotonic() > deadline:
            break
        time.sleep(0.1)
    return found


def _children_ever(supervisors: Collection[int]) -> list[int]:
    """By their arguments: an orphan has another parent now."""
    wanted = {str(pid) for pid in supervisors}
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            arguments = entry.joinpath("cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if CHILD_MODULE not in arguments or "--supervisor" not in arguments:
            continue
        if arguments[arguments.index("--supervisor") + 1] in wanted:
            found.append(int(entry.name))
    return found
