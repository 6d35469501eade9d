"""A peer: what to install, how it is given its work, and how it is started."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from benchmarks.errors import BenchmarkError
from benchmarks.place import PROJECT, Place
from benchmarks.subjects import Program, program, surroundings
from benchmarks.workload import events

PROGRAMS = Path(__file__).parent / "programs"
HOME = PROJECT / "build" / "bench-peers"
PYTHON = HOME / "python"
NODE = HOME / "node"
TOLD = {"BENCHMARK_NODE": str(NODE), "PYTHONDONTWRITEBYTECODE": "1"}
FILL_SECONDS = 120.0


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """`work` and `producer` are arguments of the interpreter, in the folder `programs/`.

    A producer reads events, a line each, and enqueues them in the peer's own format; without one
    the peer takes any message.
    """

    name: str
    packages: tuple[str, ...]
    """As pip names them; none for a peer that runs on Node."""

    work: tuple[str, ...]
    producer: tuple[str, ...] = ()
    at_most: int = 20_000
    """Events of a run, so that a slow one takes seconds too."""

    @property
    def interpreter(self) -> str:
        return str(PYTHON / "bin" / "python") if self.packages else "node"

    @contextmanager
    def start(self, place: Place, **told: str) -> Iterator[Program]:
        """The peer while the block lasts; `told` are further environment variables."""
        command = [self.interpreter, *self.work]
        with program(command, place, PROGRAMS, **TOLD, **told) as running:
            yield running

    def fill(self, place: Place, count: int) -> None:
        """Have so many events enqueued. Raises BenchmarkError."""
        lines = b"".join(msgspec.json.encode(event) + b"\n" for event in events(count))
        try:
            produced = subprocess.run(
                [self.interpreter, *self.producer],
                input=lines,
                capture_output=True,
                cwd=PROGRAMS,
                env={**os.environ, **surroundings(place), **TOLD},
                timeout=FILL_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise BenchmarkError(f"its producer was not done after {FILL_SECONDS:g} s") from None
        if produced.returncode != 0:
            said = produced.stderr.decode(errors="replace")[-2000:]
            raise BenchmarkError(f"its producer failed: {said}")
