"""`/_localaws/`: the parts of this server that AWS does not have."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import msgspec

from outboxd.localaws.calls import CallCount, Calls
from outboxd.localaws.clock import Clock
from outboxd.localaws.events.operations import table as events
from outboxd.localaws.http1 import Answer, Request
from outboxd.localaws.script.control import FaultsControl
from outboxd.localaws.script.script import Script
from outboxd.localaws.sns.operations import table as sns
from outboxd.localaws.sqs.operations import table as sqs
from outboxd.localaws.sqs.service import SqsService
from outboxd.version import __version__


class _Advance(msgspec.Struct, forbid_unknown_fields=True):
    advance_seconds: float


class _Health(msgspec.Struct):
    version: str
    services: list[str]
    now: float
    advanced_seconds: float
    status: str = "ok"


class _Moved(msgspec.Struct):
    now: float
    advanced_seconds: float


class _QueueDepth(msgspec.Struct):
    name: str
    region: str
    arn: str
    fifo: bool
    visible: int
    in_flight: int
    delayed: int


class _Queues(msgspec.Struct):
    queues: list[_QueueDepth]


class _Calls(msgspec.Struct):
    calls: list[CallCount]


_FAULT = "/_localaws/faults/"

SERVICES = ("sqs", "sns", "events")
OPERATIONS = (*sqs.OPERATIONS, *sns.OPERATIONS, *events.OPERATIONS)
"""All that faults can be addressed to; no name means two things."""


class Control:
    """Health, the clock, exact depths of all queues, the script of faults, and counted calls."""

    def __init__(self, clock: Clock, queues: SqsService, script: Script, calls: Calls) -> None:
        self._clock = clock
        self._sqs = queues
        self._faults = FaultsControl(script, OPERATIONS)
        self._calls = calls
        self._routes: Mapping[tuple[str, str], Callable[[Request], Answer]] = MappingProxyType(
            {
                ("GET", "/_localaws/health"): self._health,
                ("POST", "/_localaws/clock"): self._advance,
                ("GET", "/_localaws/queues"): self._queues,
                ("GET", "/_localaws/faults"): self._faults.list,
                ("POST", "/_localaws/faults"): self._faults.add,
                ("DELETE", "/_localaws/faults"): self._faults.clear,
                ("GET", "/_localaws/calls"): self._counted,
                ("DELETE", "/_localaws/calls"): self._count_anew,
            }
        )

    def handle(self, request: Request) -> Answer:
        path = request.path.partition("?")[0]
        if request.method == "DELETE" and path.startswith(_FAULT):
            return self._faults.clear(request, path.removeprefix(_FAULT))
        route = self._routes.get((request.method, path))
        if route is None:
            known = ", ".join(f"{method} {path}" for method, path in self._routes)
            return _problem(404, f"{request.method} {path} is not one of {known}")
        return route(request)

    def _health(self, request: Request) -> Answer:
        health = _Health(__version__, list(SERVICES), self._clock.now(), self._clock.advanced)
        return _json(200, health)

    def _advance(self, request: Request) -> Answer:
        try:
            self._clock.advance(msgspec.json.decode(request.body, type=_Advance).advance_seconds)
        except (msgspec.MsgspecError, ValueError) as error:
            return _problem(400, f'{error}; send {{"advance_seconds": n}}, n at least 0')
        return _json(200, _Moved(self._clock.now(), self._clock.advanced))

    def _queues(self, request: Request) -> Answer:
        now = self._clock.now()
        return _json(
            200,
            _Queues(
                [
                    _QueueDepth(
                        queue.identity.name,
                        queue.identity.region,
                        queue.identity.arn,
                        queue.settings.fifo,
                        *queue.depth(now),
                    )
                    for queue in self._sqs.queues()
                ]
            ),
        )

    def _counted(self, request: Request) -> Answer:
        return _json(200, _Calls(self._calls.counts()))

    def _count_anew(self, request: Request) -> Answer:
        """Tells what it forgets, so that no call falls between reading and resetting."""
        counted = self._counted(request)
        self._calls.reset()
        return counted


def _json(status: int, content: msgspec.Struct) -> Answer:
    return Answer(status, "application/json", msgspec.json.encode(content))


def _problem(status: int, message: str) -> Answer:
    return Answer(status, "application/json", msgspec.json.encode({"error": message}))
