"""EventBridge over HTTP: from a request to an answer."""

from typing import Any

import msgspec

from outboxd.localaws.calls import Calls
from outboxd.localaws.clock import Clock
from outboxd.localaws.errors import AwsError, malformed, unknown_operation
from outboxd.localaws.events import requests
from outboxd.localaws.events.answering import answer, refused
from outboxd.localaws.events.arns import bus_name
from outboxd.localaws.events.call import Call
from outboxd.localaws.events.operations.table import OPERATIONS, Operation
from outboxd.localaws.events.registry import Registry
from outboxd.localaws.exchange import Reply
from outboxd.localaws.faults import Faults, Target, passed
from outboxd.localaws.http1 import Answer, Request
from outboxd.localaws.region import region_of
from outboxd.localaws.sqs.inbox import Inbox


class EventsService:
    """Speaks AWS JSON 1.1 for all event buses of all regions; delivers to `inbox`."""

    def __init__(self, clock: Clock, inbox: Inbox, faults: Faults, calls: Calls) -> None:
        self._clock = clock
        self._inbox = inbox
        self._faults = faults
        self._calls = calls
        self._registry = Registry(clock.now())

    def handle(self, request: Request, action: str) -> Reply:
        operation = OPERATIONS.get(action)
        if operation is None:
            return refused(unknown_operation("EventBridge of localaws", action))
        target = Target("events", action, region_of(request), _bus_of(operation, request))
        self._calls.add(target)
        return passed(
            self._faults,
            target,
            request,
            lambda asked: self._perform(operation, asked, target),
            refused,
        )

    def _perform(self, operation: Operation, request: Request, target: Target) -> Answer:
        call = Call(self._registry, self._inbox, target.region, self._clock.now())
        try:
            return answer(operation.act(call, operation.decode(request.body)))
        except msgspec.MsgspecError as error:
            return refused(malformed(str(error)))
        except AwsError as refusal:
            return refused(refusal)


def _bus_of(operation: Operation, request: Request) -> str | None:
    """The name of the bus that a request is about; None if it is about none, or about several."""
    try:
        asked: Any = operation.decode(request.body)
    except msgspec.MsgspecError:
        return None
    match asked:
        case requests.PutEvents(entries=entries):
            names = {bus_name(entry.event_bus_name) for entry in entries}
            return names.pop() if len(names) == 1 else None
        case requests.CreateEventBus(name=name) | requests.NamedBus(name=name):
            return bus_name(name) if name else None
        case requests.ListEventBuses():
            return None
        case _:
            return bus_name(asked.event_bus_name)
