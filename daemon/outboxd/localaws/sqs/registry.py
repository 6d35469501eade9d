"""All queues of all regions, by name."""

import os
from collections.abc import Callable, Iterator, Mapping

from outboxd.localaws.recent import Recent
from outboxd.localaws.sqs.arns import parsed_arn, queue_arn
from outboxd.localaws.sqs.attributes import difference
from outboxd.localaws.sqs.errors import (
    queue_deleted_recently,
    queue_does_not_exist,
    queue_name_exists,
)
from outboxd.localaws.sqs.fifo import FifoQueue
from outboxd.localaws.sqs.handles import KEY_BYTES
from outboxd.localaws.sqs.queue import Identity, Queue
from outboxd.localaws.sqs.settings import Settings
from outboxd.localaws.sqs.standard import StandardQueue

NAME_RESERVED_SECONDS = 60

# Far from zero, so that code which takes sequence numbers for small integers fails here too.
_FIRST_SEQUENCE = 18_850_000_000_000_000_000


class Registry:
    """Finds, makes and removes queues; a name belongs to one queue per region."""

    def __init__(
        self,
        on_create: Callable[[Queue], None] = lambda queue: None,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self._on_create = on_create
        self._queues: dict[tuple[str, str], Queue] = {}
        self._deleted: Recent[tuple[str, str], bool] = Recent(NAME_RESERVED_SECONDS)
        self._random_bytes = random_bytes
        self._sequence = _FIRST_SEQUENCE

    def __iter__(self) -> Iterator[Queue]:
        return iter(self._queues.values())

    def find(self, region: str, name: str) -> Queue | None:
        return self._queues.get((region, name))

    def get(self, region: str, name: str) -> Queue:
        """Raises QueueDoesNotExist."""
        queue = self._queues.get((region, name))
        if queue is None:
            raise queue_does_not_exist()
        return queue

    def find_arn(self, arn: str) -> Queue | None:
        place = parsed_arn(arn)
        return None if place is None else self._queues.get(place)

    def existing(self, region: str, name: str, asked: Mapping[str, str]) -> Queue | None:
        """The queue that creating with these attributes would return. Raises QueueNameExists."""
        queue = self.find(region, name)
        if queue is not None:
            differing = difference(asked, queue.settings)
            if differing is not None:
                raise queue_name_exists(differing)
        return queue

    def create(self, region: str, name: str, settings: Settings, now: float) -> Queue:
        """Raises QueueDeletedRecently within a minute of the deletion of a namesake."""
        if self._deleted.get((region, name), now):
            raise queue_deleted_recently()
        identity = Identity(region, name, queue_arn(region, name), self._random_bytes(KEY_BYTES))
        kind = FifoQueue if settings.fifo else StandardQueue
        queue = kind(identity, settings, now, self.find_arn)
        self._queues[region, name] = queue
        self._on_create(queue)
        return queue

    def delete(self, queue: Queue, now: float) -> None:
        place = (queue.identity.region, queue.identity.name)
        del self._queues[place]
        self._deleted.put(place, True, now)
        queue.delete_queue()

    def in_region(self, region: str) -> list[Queue]:
        """By name."""
        return [self._queues[place] for place in sorted(self._queues) if place[0] == region]

    def sources_of(self, queue: Queue) -> list[Queue]:
        """The queues whose dead letters come to `queue`, by name."""
        return [
            source
            for source in self.in_region(queue.identity.region)
            if source.settings.redrive is not None
            and source.settings.redrive.target_arn == queue.identity.arn
        ]

    def next_sequence(self) -> str:
        """A sequence number above all earlier ones, of any queue: redriven messages keep theirs."""
        self._sequence += 256
        return str(self._sequence)
