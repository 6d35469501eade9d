"""Which part of a call a fault is about: the whole call, or some entries of its batch."""

import math
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

import msgspec

from outboxd.localaws.http1 import Request
from outboxd.localaws.script.forms import BatchForm
from outboxd.localaws.script.kinds import FailEntries, StaleReceipt, Swallow

_ADDRESSES = frozenset({"QueueUrl", "QueueName", "TopicArn", "TargetArn", "EventBusName"})
# Made by programs, of random ids as a rule, which may hold any short text by chance.
_LABELS = frozenset({"MessageDeduplicationId"})
_NOT_CONTENT = _ADDRESSES | _LABELS


class Batch(NamedTuple):
    """A batch request and the positions of the entries that a fault is about."""

    form: BatchForm
    content: dict[str, Any]
    chosen: tuple[int, ...]

    @property
    def entries(self) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = self.content[self.form.member]
        return entries


def content_of(request: Request) -> dict[str, Any]:
    """The request as plain JSON; empty if it cannot be read, which its operation will say."""
    try:
        return msgspec.json.decode(request.body, type=dict[str, Any])
    except msgspec.MsgspecError:
        return {}


def holds(content: Any, text: str) -> bool:
    """Whether a body, an attribute or any other value has the text in it."""
    return any(text in value for value in _texts(content))


def candidates(
    kind: Swallow | StaleReceipt | FailEntries,
    form: BatchForm,
    content: dict[str, Any],
    containing: str | None,
) -> tuple[int, ...]:
    """Positions of the batch's entries that the fault may be about; none: it is about none."""
    entries = content.get(form.member)
    if not isinstance(entries, list) or not form.acceptable(entries):
        return ()
    return tuple(
        position
        for position, entry in enumerate(entries)
        if (kind.entries is None or position in kind.entries)
        and (containing is None or holds(entry, containing))
    )


def drawn(candidates: tuple[int, ...], share: float | None, dice: Random) -> tuple[int, ...]:
    """That share of the candidates, at least one of them."""
    if share is None:
        return candidates
    return tuple(sorted(dice.sample(candidates, math.ceil(share * len(candidates)))))


def _texts(content: Any) -> Iterator[str]:
    match content:
        case str():
            yield content
        case dict():
            for key, value in content.items():
                if key not in _NOT_CONTENT:
                    yield from _texts(value)
        case list():
            for value in content:
                yield from _texts(value)
        case _:
            return
