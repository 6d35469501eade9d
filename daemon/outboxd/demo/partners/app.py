"""The partners' HTTP interface, and the one under /_partners that plays and counts them."""

import asyncio

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from outboxd.demo.partners import book as books
from outboxd.demo.partners.book import Book, Service
from outboxd.demo.partners.faults import Fault, Script
from outboxd.demo.partners.hangup import hang_up
from outboxd.demo.partners.services import Answer, answer, problem


class PartnersApp:
    """Serves both; everything is in memory, and gone with the process."""

    def __init__(self) -> None:
        self._book = Book()
        self._script = Script()
        control = [
            Route("/_partners/counts", self._counts),
            Route("/_partners/accepted", self._accepted),
            Route("/_partners/requests", self._requests),
            Route("/_partners/faults", self._faults, methods=["GET"]),
            Route("/_partners/faults", self._add_fault, methods=["POST"]),
            Route("/_partners/faults", self._clear_faults, methods=["DELETE"]),
            Route("/_partners/faults/{number:int}", self._clear_faults, methods=["DELETE"]),
        ]
        pickups = Route("/courier/pickups", self._serving(Service.COURIER), methods=["POST"])
        messages = [
            Route(f"/{service}/messages", self._serving(service), methods=["POST"])
            for service in (Service.WHATSAPP, Service.PUSH)
        ]
        self._app = Starlette(routes=[pickups, *messages, *control])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    def _serving(self, service: Service) -> "_Served":
        return _Served(self._book, self._script, service)

    async def _counts(self, _: Request) -> Response:
        return _json(self._book.counts)

    async def _accepted(self, request: Request) -> Response:
        return _json(self._book.accepted(request.query_params.get("service")))

    async def _requests(self, _: Request) -> Response:
        return _json(list(self._book.requests))

    async def _faults(self, _: Request) -> Response:
        return _json(self._script.told())

    async def _add_fault(self, request: Request) -> Response:
        try:
            fault = msgspec.json.decode(await request.body(), type=Fault)
        except msgspec.MsgspecError as error:
            return _answered(problem(400, str(error)))
        return _json({"id": self._script.add(fault)}, 201)

    async def _clear_faults(self, request: Request) -> Response:
        return _json({"cleared": self._script.clear(request.path_params.get("number"))})


class _Served:
    """One service: an ASGI application, as only that can cut its connection."""

    def __init__(self, book: Book, script: Script, service: Service) -> None:
        self._book = book
        self._script = script
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        key = request.headers.get("Idempotency-Key", "")
        body = await request.body()
        self._book.counts[self._service].requests += 1
        told = await self._told(self._script.meeting(self._service), key, body)
        status = 0 if told is None else told.status
        self._book.requests.append(books.Request(self._service, key, status))
        if told is None:
            await hang_up(scope, receive)
        else:
            await _answered(told)(scope, receive, send)

    async def _told(self, fault: Fault | None, key: str, body: bytes) -> Answer | None:
        """What is answered; None if the connection is to be cut."""
        if fault is None:
            return answer(self._book, self._service, key, body)
        self._book.counts[self._service].faulted += 1
        if fault.when == "after":
            # Done first, and late told: a client that has given up is not noticed, as in life.
            done = answer(self._book, self._service, key, body)
            await asyncio.sleep(fault.delay_seconds)
            return _changed(fault) if _changes(fault) else done
        await asyncio.sleep(fault.delay_seconds)
        return _changed(fault) if _changes(fault) else answer(self._book, self._service, key, body)


def _changes(fault: Fault) -> bool:
    return fault.drop or fault.status is not None


def _changed(fault: Fault) -> Answer | None:
    return None if fault.status is None else problem(fault.status, fault.words, fault.retry_after)


def _answered(told: Answer) -> Response:
    headers = {} if told.retry_after is None else {"Retry-After": told.retry_after}
    return _json(told.content, told.status, headers)


def _json(content: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(content), status, headers, "application/json")
