"""Rules for handlers that take several events at once."""

import json
from collections.abc import Iterator

from outboxd.core.globs import may_meet
from outboxd.core.places import Place
from outboxd.core.settings import HandlerSettings, QueueSettings, is_fifo

INBOXES = ("transaction", "off")
"""A batch is one transaction, or none: "after" and "own" mark each event by itself."""


def batch_problems(
    handler: HandlerSettings, queue: QueueSettings, sqs_name: str, place: Place
) -> Iterator[str]:
    """Why this handler, which is at `place`, cannot be given batches of the SQS queue `sqs_name`.

    batch_wait_seconds needs no rule: leases are extended while messages wait for each other.
    """
    if handler.batch == 1:
        return
    if is_fifo(sqs_name):
        yield (
            f'{place} batch: "{sqs_name}" is a FIFO queue, which hands over one message of a group '
            "after the other; a batch that fails is tried one by one, in no order; leave batch out"
        )
    if handler.batch > queue.concurrency:
        yield (
            f"{place} batch: {handler.batch} is above the queue's concurrency "
            f"({queue.concurrency}), the most messages that are at hand, so it could never be full"
        )
    if handler.inbox not in INBOXES:
        yield (
            f'{place} batch: inbox = "{handler.inbox}" marks each event by itself; a batch needs '
            'inbox = "transaction" or "off"'
        )
    yield from _shared_events(handler, queue, place)


def _shared_events(handler: HandlerSettings, queue: QueueSettings, place: Place) -> Iterator[str]:
    """Batches and other handlers of one message would have to wait for each other."""
    for other in queue.handlers:
        if other is not handler and may_meet(handler.event, other.event):
            yield (
                f'{place} batch: handler "{other.name}" may get the same events '
                f"({json.dumps(other.event)} and {json.dumps(handler.event)}); one that takes "
                "batches has to be the only handler of its events on the queue"
            )
            return
