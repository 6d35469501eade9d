"""Servers that the demo and tests bring along, each in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from outboxd.demo.errors import DemoError

STOP_SECONDS = 5.0

NOTHING: Mapping[str, str] = {}


@contextmanager
def neighbour(
    module: str, arguments: Sequence[str], log: Path, environ: Mapping[str, str] = NOTHING
) -> Iterator[str]:
    """`python -m MODULE ARGUMENTS` while the block lasts; the first line that it printed.

    `environ` comes on top of this process's own: the place for secrets, which others can read in a
    command line.

    The module has to end with its standard input (`lifeline.end_with_standard_input`), so that it
    is gone when this process is, however that ended. Raises DemoError if it does not start.
    """
    command = ["-m", module, *arguments, "--stop-with-stdin"]
    with announcing(command, module, log, environ) as line:
        yield line


@contextmanager
def announcing(
    arguments: Sequence[str], called: str, log: Path, environ: Mapping[str, str] = NOTHING
) -> Iterator[str]:
    """`python ARGUMENTS` while the block lasts; the first line that it printed. Raises DemoError if
    there is none, of what it is `called`."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-P", *arguments],
            env={**os.environ, **environ},
            # Nothing is ever written to it: its end tells the child that this process is gone.
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            text=True,
            start_new_session=True,  # a Ctrl-C is for the demo, which stops the others in order
        )
    try:
        yield _announced(process, called, log)
    finally:
        _stop(process)


def _announced(process: subprocess.Popen[str], called: str, log: Path) -> str:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    if not line:
        raise DemoError(f"{called} did not start: {log.read_text(errors='replace')[-2000:]}")
    return line


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
