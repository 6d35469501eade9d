"""What became of dead letters that a command looked at, sent back or deleted."""

from collections import Counter

import msgspec

from outboxd.core.redrive import Entry


class DeadLetterQueue(msgspec.Struct, frozen=True):
    """What SQS said of the queue itself at the start; the counts are approximate.

    `in_flight` letters are hidden by somebody: another look, or a command that was killed.
    """

    name: str
    visible: int
    in_flight: int
    retention_seconds: int


class Failure(msgspec.Struct, frozen=True):
    """A letter that is still in the dead-letter queue; `sent` if it is also in its queue."""

    entry: Entry
    error: str
    sent: bool


class Report(msgspec.Struct):
    """What became of the letters; but for those of a look they are without their bodies.

    Of all that were `looked_at`, `found` are the wanted ones that it came to, `elsewhere` counts
    those of other queues by the queue, and `newer` are those that it left since they were buried
    after it began. `outage` is what ended the work early,
    `still_hidden` why letters could not be given back, and `cut_groups` are message groups that may
    have letters which SQS did not show.
    """

    looked_at: int = 0
    found: list[Entry] = []
    done: list[Entry] = []
    failed: list[Failure] = []
    came_back: list[Entry] = []
    elsewhere: Counter[str] = msgspec.field(default_factory=Counter)
    newer: list[Entry] = []
    cut_groups: list[str] = []
    outage: str | None = None
    still_hidden: str | None = None


def without_body(entry: Entry) -> Entry:
    """For the report: the bodies of a hundred thousand letters are more than a machine holds."""
    bare = msgspec.structs.replace(entry.message, body="", attributes={})
    return msgspec.structs.replace(entry, message=bare)


def failure(entry: Entry, error: str, *, sent: bool = False) -> Failure:
    """The letter is kept without its body."""
    return Failure(without_body(entry), error, sent)
