"""`/_localaws/`: the parts of this server that AWS does not have."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import msgspec

from outboxd.localaws.clock import Clock
from outboxd.localaws.http1 import Answer, Request
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


class Control:
    """Health, the clock, and exact depths of all queues."""

    def __init__(self, clock: Clock, sqs: SqsService) -> None:
        self._clock = clock
        self._sqs = sqs
        self._routes: Mapping[tuple[str, str], Callable[[Request], Answer]] = MappingProxyType(
            {
                ("GET", "/_localaws/health"): self._health,
                ("POST", "/_localaws/clock"): self._advance,
                ("GET", "/_localaws/queues"): self._queues,
            }
        )

    def handle(self, request: Request) -> Answer:
        path = request.path.partition("?")[0]
        route = self._routes.get((request.method, path))
        if route is None:
            known = ", ".join(f"{method} {path}" for method, path in self._routes)
            return _problem(404, f"{request.method} {path} is not one of {known}")
        return route(request)

    def _health(self, request: Request) -> Answer:
        health = _Health(__version__, ["sqs"], self._clock.now(), self._clock.advanced)
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


def _json(status: int, content: msgspec.Struct) -> Answer:
    return Answer(status, "application/json", msgspec.json.encode(content))


def _problem(status: int, message: str) -> Answer:
    return Answer(status, "application/json", msgspec.json.encode({"error": message}))
