"""What all stages of one pool share."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import anyio

from outboxd.actors.consumer.gates import Change, Gates, Obstacle
from outboxd.actors.consumer.hand import SETTLING_LIMIT, Hand
from outboxd.actors.consumer.timing import Timing
from outboxd.core.clock import boottime
from outboxd.core.judging import Patience
from outboxd.core.narrowing import FailedHeads
from outboxd.core.retry import Backoff, Dice
from outboxd.core.settings import BackoffSettings, QueueSettings, is_fifo
from outboxd.ports.consumer_observer import ConsumerObserver
from outboxd.ports.progress import Progress

NO_HANDLER = ""
"""Stands for the handler of messages that come to none."""

_JITTER: dict[str, float] = {"none": 0.0, "equal": 0.5, "full": 1.0}


@dataclass(slots=True, kw_only=True)
class Pool:
    """One process of a pool: its settings, its clocks and dice, and the state that stages share."""

    name: str
    settings: QueueSettings
    observer: ConsumerObserver
    progress: Progress
    timing: Timing = field(default_factory=Timing)
    clock: Callable[[], float] = boottime
    wall_clock: Callable[[], float] = time.time
    dice: Dice = random.random
    change: Change = field(default_factory=Change)
    stopping: anyio.Event = field(default_factory=anyio.Event)
    gates: Gates = field(init=False)
    hand: Hand = field(init=False)
    failed_heads: FailedHeads = field(default_factory=FailedHeads)
    patience: dict[str, Patience] = field(init=False)

    def __post_init__(self) -> None:
        # The supervisor tells every consumer of the extender right after the welcome.
        self.gates = Gates(self.change, Obstacle.EXTENDER)
        self.progress.obstacles = lambda: self.gates.obstacles
        self.hand = Hand(self.settings.concurrency, self.change, self.progress)
        self.patience = _patience(self.settings)

    @property
    def sqs_name(self) -> str:
        """The name that SQS knows the queue by."""
        return self.settings.queue_name or self.name

    @property
    def workers(self) -> int:
        """How many pieces of work are done at a time.

        The worker of a line waits for its head to be settled, when its slot is taken again already.
        """
        return self.settings.concurrency + (SETTLING_LIMIT if self.fifo else 0)

    @property
    def fifo(self) -> bool:
        """Whether the messages of a group are to be handled in their order."""
        return is_fifo(self.sqs_name)


def _patience(settings: QueueSettings) -> dict[str, Patience]:
    patience = {NO_HANDLER: Patience(settings.max_attempts, _backoff(settings.backoff))}
    for handler in settings.handlers:
        attempts = handler.max_attempts or settings.max_attempts
        patience[handler.name] = Patience(attempts, _backoff(handler.backoff or settings.backoff))
    return patience


def _backoff(settings: BackoffSettings) -> Backoff:
    return Backoff(
        first_seconds=settings.first_seconds,
        factor=settings.factor,
        cap_seconds=settings.cap_seconds,
        jitter=_JITTER[settings.jitter],
        delays=settings.delays_seconds,
    )
