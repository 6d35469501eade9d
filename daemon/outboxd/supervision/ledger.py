"""The lease ledger: what every consumer, alive or dead, holds and has not settled."""

from collections.abc import Iterable, Iterator
from typing import assert_never
from uuid import UUID

import msgspec

from outboxd.channels.protocol import (
    MAX_FRAME_BYTES,
    NO_ANSWER,
    Address,
    Alone,
    Forget,
    Hold,
    Lease,
    Settled,
    Suspect,
)

CHUNK_BYTES = MAX_FRAME_BYTES // 2
TOKENS_PER_FRAME = 10_000

_encoder = msgspec.msgpack.Encoder()


class Ledger:
    """Sees every Hold, Alone, Forget and Settled pass by.

    It is what a new extender is told, what says whether a dead owner left something to be given
    back, and what the owner may have died of. An owner stays until its last lease is settled, by
    itself or, once it is dead, by the extender that gave the lease back.
    """

    def __init__(self) -> None:
        self._leases: dict[Address, dict[int, Lease]] = {}
        self._forgotten: dict[Address, set[int]] = {}
        self._alone: dict[Address, int] = {}

    def saw(self, message: Hold | Alone | Forget | Settled) -> None:
        """Take note of a message about leases; what is told of a lease twice changes nothing."""
        match message:
            case Hold(owner=owner, leases=leases):
                # Nothing is received during a run alone: the last one is over, though its Settled,
                # which waits for company, may still be on its way.
                self._alone.pop(owner, None)
                for lease in leases:
                    self._leases.setdefault(owner, {}).setdefault(lease.token, lease)
            case Alone(owner=owner, token=token):
                if token in self._leases.get(owner, {}):
                    self._alone[owner] = token
            case Forget(owner=owner, tokens=tokens):
                known = self._leases.get(owner, {}).keys() & set(tokens)
                if known:
                    self._forgotten.setdefault(owner, set()).update(known)
            case Settled(owner=owner, tokens=tokens):
                self._settle(owner, tokens)
            case _:
                assert_never(message)

    def _settle(self, owner: Address, tokens: tuple[int, ...]) -> None:
        leases = self._leases.get(owner, {})
        forgotten = self._forgotten.get(owner, set())
        for token in tokens:
            leases.pop(token, None)
            forgotten.discard(token)
        if self._alone.get(owner) not in leases:
            self._alone.pop(owner, None)
        if not leases:
            self._leases.pop(owner, None)
        if not forgotten:
            self._forgotten.pop(owner, None)

    def owners(self) -> tuple[Address, ...]:
        """Everybody who has unsettled leases, the dead included, in the order of first Holds."""
        return tuple(self._leases)

    def held_by(self, owner: Address) -> tuple[Lease, ...]:
        """The owner's unsettled leases, oldest first, the forgotten ones included."""
        return tuple(self._leases.get(owner, {}).values())

    def forgotten_by(self, owner: Address) -> frozenset[int]:
        """Those of the owner's unsettled leases that it no longer wants extended."""
        return frozenset(self._forgotten.get(owner, ()))

    def suspects_of(self, owner: Address, reason: str, death: UUID) -> tuple[Suspect, ...]:
        """The messages whose handlers may have ended a dead owner, oldest first; `reason` is how it
        ended, `death` its identity. What it had forgotten no handler was working on any more.

        When one of them ran alone, the others had not begun: it is the only suspect.
        """
        working = {
            token: lease
            for token, lease in self._leases.get(owner, {}).items()
            if token not in self._forgotten.get(owner, ())
        }
        if (alone := self._alone.get(owner)) in working:
            lone = working[alone]
            return (Suspect(lone.queue, lone.message_id, True, reason, death),)
        return tuple(
            Suspect(lease.queue, lease.message_id, False, reason, death)
            for lease in working.values()
        )

    def replay(self) -> Iterator[Hold | Forget]:
        """All that a new extender has to know, in frames that are well below the limit.

        A lease that was forgotten but never settled must not be extended again, yet it has to be
        given back if its owner is dead: it is held, and forgotten right after.
        """
        for owner, leases in self._leases.items():
            for chunk in _chunks(leases.values()):
                yield Hold(owner, chunk)
            tokens = sorted(self._forgotten.get(owner, ()))
            for start in range(0, len(tokens), TOKENS_PER_FRAME):
                yield Forget(owner, tuple(tokens[start : start + TOKENS_PER_FRAME]), NO_ANSWER)


def _chunks(leases: Iterable[Lease]) -> Iterator[tuple[Lease, ...]]:
    chunk: list[Lease] = []
    size = 0
    for lease in leases:
        added = len(_encoder.encode(lease))
        if chunk and size + added > CHUNK_BYTES:
            yield tuple(chunk)
            chunk, size = [], 0
        chunk.append(lease)
        size += added
    if chunk:
        yield tuple(chunk)
