"""What every trial is, and what it is given."""

from collections.abc import Callable, Collection
from typing import ClassVar, Protocol

import msgspec

from benchmarks.errors import BenchmarkError
from benchmarks.figures import Figures, Round
from benchmarks.peers.peer import Peer
from benchmarks.place import Grounds
from benchmarks.rounds import Absences


class Extent(msgspec.Struct, frozen=True, kw_only=True):
    """How much is tried. Seconds are of one measurement, starting apart."""

    rounds: int = 2
    latency_seconds: float = 12.0
    backlogs: tuple[int, ...] = (1_000, 100_000, 1_000_000)
    backlog_events: int = 15_000
    relays: tuple[int, ...] = (1, 2, 4)
    queues: tuple[int, ...] = (1, 10, 50)
    idle_seconds: float = 20.0


QUICK = Extent(
    rounds=1,
    latency_seconds=4.0,
    backlogs=(1_000, 20_000),
    backlog_events=5_000,
    relays=(1, 2),
    queues=(1, 3),
    idle_seconds=5.0,
)


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """Where a trial takes place, and with whom: `subjects`, or all if there are none."""

    grounds: Grounds
    extent: Extent
    subjects: Collection[str]
    absences: Absences
    say: Callable[[str], None]

    def takes_part(self, subject: str) -> bool:
        return subject not in self.absences.reasons and (
            not self.subjects or subject in self.subjects
        )

    def tried(self, subject: str, run: Callable[[], Figures]) -> Figures | None:
        """What a peer's run has measured; None for one that failed, and is absent from then on."""
        try:
            return run()
        except BenchmarkError as error:
            self.absences.add(subject, f"it failed: {error}")
            return None


class Trial(Protocol):
    """A benchmark with rounds of its own."""

    family: ClassVar[str]
    """What `--only` selects it by."""

    peers: ClassVar[tuple[Peer, ...]]
    """Those that are to be installed for it."""

    def play(self, stage: Stage) -> list[Round]:
        """Its figures, round by round. Raises BenchmarkError."""
