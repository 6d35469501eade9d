"""How cost grows: with the backlog, with the number of relays, with the number of queues."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import reduce
from itertools import zip_longest
from typing import ClassVar

from benchmarks.figures import Figures, Round
from benchmarks.peers.peer import Peer
from benchmarks.trials import configurations as c
from benchmarks.trials.daemons import ready_daemon
from benchmarks.trials.idling import Idlers, idle, size
from benchmarks.trials.relaying import Backlog
from benchmarks.trials.rounds import beside
from benchmarks.trials.trial import Stage

BACKLOG, RELAYS, QUEUES = "scale, backlog", "scale, relays", "scale, queues"

HORIZON_SECONDS = 6.0
"""First reads are dearer: a relay does not know yet which rows nothing can appear before."""

WINDOWS = 3

SETTLE_SECONDS = 13.0
"""Until a pool's first long poll has ended, and it has asked, as once an hour, how long its queue
keeps messages: with a client of its own, which costs as much as minutes of idling."""

BETWEEN_RELAYS = 1_000


def backlog_name(count: int) -> str:
    return f"{count:,} events"


def relays_name(count: int) -> str:
    return "1 relay" if count == 1 else f"{count} relays"


def queues_name(count: int) -> str:
    return "1 queue" if count == 1 else f"{count} queues"


class Scale:
    """Three tables. Relays and queues are idle side by side, each with a database and an SQS of
    their own: what is counted is counted by process, by database and by server."""

    family: ClassVar[str] = "scale"
    peers: ClassVar[tuple[Peer, ...]] = ()

    def play(self, stage: Stage) -> list[Round]:
        extent = stage.extent
        tables = [_with_backlog(stage, count) for count in extent.backlogs]
        tables += [
            [_idle_with(stage, relays, queues)]
            for relays, queues in zip_longest(extent.relays, extent.queues, fillvalue=0)
        ]
        return reduce(beside, tables)


def _with_backlog(stage: Stage, count: int) -> list[Round]:
    """One daemon, and a round for each window."""
    subject = backlog_name(count)
    if not stage.takes_part(subject):
        return []
    began = time.monotonic()
    with (
        stage.grounds.place(c.head() + c.relay() + c.unread()) as place,
        Backlog(place, count) as backlog,
        ready_daemon(place) as daemon,
    ):
        backlog.last(HORIZON_SECONDS, [daemon])
        events = stage.extent.backlog_events // WINDOWS
        windows = [backlog.cost(events, [daemon]) for _ in range(WINDOWS)]
    stage.say(f"  {BACKLOG}: {subject}, {time.monotonic() - began:.0f} s")
    return [{(BACKLOG, subject): figures} for figures in windows]


def _idle_with(stage: Stage, relays: int, queues: int) -> Round:
    """So many relays, and beside them one daemon with so many queues; none for 0."""
    began = time.monotonic()
    runs: Round = {}
    with ExitStack() as kept, ExitStack() as left_first:
        idlers: dict[tuple[str, str], Idlers] = {}
        if relays and stage.takes_part(relays_name(relays)):
            key = RELAYS, relays_name(relays)
            idlers[key], runs[key] = left_first.enter_context(_relaying(stage, relays))
        if queues and stage.takes_part(queues_name(queues)):
            idlers[QUEUES, queues_name(queues)] = kept.enter_context(_consuming(stage, queues))
        time.sleep(SETTLE_SECONDS)
        for key, figures in idle(idlers, stage.extent.idle_seconds).items():
            runs[key] = runs.get(key, {}) | figures
            stage.say(f"  {key[0]}: {key[1]}, {time.monotonic() - began:.0f} s")
        # Alone, since pages that both have in common would count half.
        left_first.close()
        for key, those in idlers.items():
            if key[0] == QUEUES:
                runs[key] = size(those) | runs[key]
    return runs


@contextmanager
def _relaying(stage: Stage, count: int) -> Iterator[tuple[Idlers, Figures]]:
    """So many daemons on one outbox: what an event costs, and how large they are then."""
    with ExitStack() as stack:
        place = stack.enter_context(stage.grounds.place(c.head() + c.relay() + c.unread()))
        backlog = stack.enter_context(Backlog(place, BETWEEN_RELAYS))
        daemons = [stack.enter_context(ready_daemon(place, number)) for number in range(count)]
        backlog.last(HORIZON_SECONDS, daemons)
        costs = backlog.cost(stage.extent.backlog_events, daemons)
        backlog.drain()
        idlers = Idlers(place, daemons)
        yield idlers, costs | size(idlers)


@contextmanager
def _consuming(stage: Stage, count: int) -> Iterator[Idlers]:
    """One daemon with a relay and so many queues, each with a pool of one process."""
    names = [c.FIRST, *(f"{c.FIRST}-{number}" for number in range(2, count + 1))]
    configuration = c.head() + c.relay() + "".join(c.pool(name) for name in names)
    with stage.grounds.place(configuration) as place, ready_daemon(place) as daemon:
        yield Idlers(place, [daemon])
