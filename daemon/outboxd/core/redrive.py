"""Dead letters read again: what each says, and what goes back to the queue."""

import hashlib
from collections import Counter
from collections.abc import Sequence

import msgspec

from outboxd.core.envelopes import Incoming, Malformed, open_envelope
from outboxd.core.letters import (
    ATTRIBUTE,
    MAX_ATTRIBUTES,
    MAX_MESSAGE_BYTES,
    Letter,
    letter_bytes,
)
from outboxd.core.messages import Attribute, ReceivedMessage
from outboxd.core.outcomes import DeadReason
from outboxd.core.settings import is_fifo

REDRIVEN = "outboxd_redriven"
"""Name of the message attribute that counts how often a message was redriven."""

MAX_RECEIVES = "max_receives"
"""The reason of a letter that outboxd did not write: as a rule, SQS moved it by itself after the
queue's maxReceiveCount. It is an inference; SQS records no reason."""

UNREADABLE = "unreadable"
"""The reason of a letter whose `outboxd` attribute is not one that outboxd writes."""

REASONS = (*(reason.value for reason in DeadReason), MAX_RECEIVES, UNREADABLE)


class Blamed(msgspec.Struct, frozen=True):
    """A handler that gave the message up."""

    name: str
    reason: str = ""
    error: str = ""
    attempts: int = 0


class _Facts(msgspec.Struct, frozen=True):
    """What `core.letters.write_letter` writes; keys beyond these belong to a newer version."""

    reason: str
    error: str = ""
    handlers: tuple[Blamed, ...] = ()
    source_queue: str | None = None
    message_id: str | None = None
    receive_count: int | None = None
    event_id: str | None = None
    event_type: str | None = None
    sent_at: str | None = None
    dead_lettered_at: str | None = None
    dropped_attributes: tuple[str, ...] = ()


class Entry(msgspec.Struct, frozen=True):
    """One dead letter: what SQS delivered and what it says of itself.

    `message.message_id` is the letter's own, `facts.message_id` the one that the message had in its
    queue, which the logs name.
    """

    message: ReceivedMessage
    facts: _Facts

    @property
    def ids(self) -> frozenset[str]:
        """All that a person may call it by, in lower case."""
        ids = (self.message.message_id, self.facts.message_id, self.facts.event_id)
        return frozenset(each.lower() for each in ids if each)

    @property
    def source_queue(self) -> str | None:
        """The SQS queue that the message was in, if that is known. What SQS tells of its own move
        goes before what is written on the letter, which may be of an earlier death."""
        return self.message.moved_from or self.facts.source_queue


_facts = msgspec.json.Decoder(_Facts)


def read_letter(message: ReceivedMessage) -> Entry:
    """What a message of a dead-letter queue says. Never fails: whatever it holds is to be shown."""
    attribute = message.attributes.get(ATTRIBUTE)
    if attribute is None:
        return Entry(message, _inferred(message, MAX_RECEIVES))
    try:
        return Entry(message, _facts.decode(attribute.value))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return Entry(message, _inferred(message, UNREADABLE))


def redriven(message: ReceivedMessage, queue: str) -> Letter:
    """The message for the SQS queue `queue`: the letter without its reason, counted if there is
    room.

    A FIFO queue is told the letter's own id, so that for five minutes a letter whose delete failed
    is not doubled by a second redrive. The id of the event, or of the message as it was, would be
    wrong: SQS had it within these minutes, would confirm the send, and drop the message.
    """
    kept = {name: a for name, a in message.attributes.items() if name not in (ATTRIBUTE, REDRIVEN)}
    deduplication_id = f"redrive-{message.message_id}" if is_fifo(queue) else None
    unmarked = Letter(message.body, kept, message.trace_header, message.group_id, deduplication_id)
    mark = Attribute("Number", str(_times_redriven(message) + 1))
    marked = msgspec.structs.replace(unmarked, attributes={**kept, REDRIVEN: mark})
    fits = len(kept) < MAX_ATTRIBUTES and letter_bytes(marked) <= MAX_MESSAGE_BYTES
    return marked if fits else unmarked


def in_turns(entries: Sequence[Entry], queue: str) -> list[list[Entry]]:
    """The letters in as many calls as the order of the SQS queue `queue` demands.

    A FIFO queue gets one letter of each message group in a call: of two, the first could fail and
    the second overtake it. Any other gets all at once.
    """
    if not is_fifo(queue):
        return [list(entries)]
    turns: list[list[Entry]] = []
    seen: Counter[str | None] = Counter()
    for entry in entries:
        group = entry.message.group_id
        if seen[group] == len(turns):
            turns.append([])
        turns[seen[group]].append(entry)
        seen[group] += 1
    return turns


class Comebacks:
    """Tells a letter that this run has sent already, and that came back.

    A handler that still fails buries a message again faster than a long redrive ends, so that "all"
    would never be done. The clock cannot tell old from new: SQS's is not ours. The body can, for it
    is never changed, together with the count of redrives.
    """

    def __init__(self) -> None:
        self._sent: dict[bytes, int] = {}

    def note(self, letter: Letter) -> None:
        """To be called before the send: a send whose answer is lost comes back as well."""
        key = _digest(letter.body)
        mark = letter.attributes.get(REDRIVEN)
        times = 0 if mark is None else int(mark.value)
        self._sent[key] = min(times, self._sent.get(key, times))

    def knows(self, entry: Entry) -> bool:
        """Whether it came back, or is a copy that cannot be told from one: a later run takes it."""
        sent = self._sent.get(_digest(entry.message.body))
        if sent is None:
            return False
        return REDRIVEN in entry.facts.dropped_attributes or _times_redriven(entry.message) >= sent


def _inferred(message: ReceivedMessage, reason: str) -> _Facts:
    incoming = _opened(message)
    if incoming is None:
        return _Facts(reason)
    return _Facts(reason, event_id=str(incoming.id), event_type=incoming.type)


def _opened(message: ReceivedMessage) -> Incoming | None:
    try:
        return open_envelope(message)
    except Malformed:
        return None


def _times_redriven(message: ReceivedMessage) -> int:
    mark = message.attributes.get(REDRIVEN)
    if mark is None or not isinstance(mark.value, str):
        return 0
    # Anybody may write such an attribute: int() takes minutes for a million digits.
    return int(mark.value) if mark.value.isdecimal() and len(mark.value) < 10 else 0


def _digest(body: str) -> bytes:
    return hashlib.sha256(body.encode("utf-8", "surrogatepass")).digest()
