"""One call of an operation: what it works on and when."""

from typing import NamedTuple

from outboxd.localaws.events.registry import Registry
from outboxd.localaws.sqs.inbox import Inbox


class Call(NamedTuple):
    registry: Registry
    inbox: Inbox
    region: str
    now: float
