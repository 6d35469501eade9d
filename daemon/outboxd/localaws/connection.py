"""One client's connection: keep-alive HTTP/1.1, one request at a time."""

import asyncio
import logging
import select
from collections.abc import Callable
from typing import assert_never

from outboxd.localaws.exchange import Client, Hangup, Outcome, Pending, Reply
from outboxd.localaws.http1 import (
    MAX_BODY_BYTES,
    MAX_HEAD_BYTES,
    Answer,
    BadRequest,
    Request,
    RequestParser,
)

log = logging.getLogger(__name__)

Handler = Callable[[Request, Client], Reply]

# POLLRDHUP (the peer has closed its half) exists on Linux only; elsewhere POLLHUP must do.
_HANGUP_EVENTS = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR


class Connection(asyncio.Protocol):
    """Hands requests to a handler and writes its answers in order.

    A client that disappears while its answer is pending has that answer abandoned, so that a long
    poll never takes a message for nobody.
    """

    def __init__(self, handle: Handler, connections: set["Connection"]) -> None:
        self._handle = handle
        self._connections = connections
        self._parser = RequestParser()
        self._pending: Pending | None = None
        self._transport: asyncio.Transport | None = None

    def gone(self) -> bool:
        transport = self._transport
        if transport is None or transport.is_closing():
            return True
        # Ask the kernel too: the client's farewell may have arrived and not been read yet, and the
        # send that wakes a poll is often handled in the same turn of the event loop.
        poller = select.poll()
        poller.register(transport.get_extra_info("socket").fileno(), _HANGUP_EVENTS)
        return any(events & _HANGUP_EVENTS for _, events in poller.poll(0))

    @property
    def _open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def hang_up(self) -> None:
        """Cut the connection, whatever is under way."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._connections.discard(self)
        if self._pending is not None:
            self._pending.abandon()
            self._pending = None

    def data_received(self, data: bytes) -> None:
        self._parser.feed(data)
        if self._pending is None:
            self._serve()
        elif self._parser.buffered > MAX_BODY_BYTES + MAX_HEAD_BYTES:
            # Requests are answered in turn: whoever sends on and on while one waits has to stop.
            self.hang_up()

    def pause_writing(self) -> None:
        # The client reads slower than it asks: take no more requests until it has caught up.
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        if self._transport is not None:
            self._transport.resume_reading()

    def _serve(self) -> None:
        """Handle what has arrived until something is pending or nothing is left."""
        while self._pending is None and self._open:
            try:
                request = self._parser.next_request()
            except BadRequest as refusal:
                self._end(refusal.answer(), keep_alive=False)
                return
            if request is None:
                return
            self._serve_one(request)

    def _serve_one(self, request: Request) -> None:
        try:
            reply = self._handle(request, self)
        except Exception:
            log.exception("request failed", extra={"method": request.method, "path": request.path})
            reply = Answer(500, "text/plain", b"InternalFailure\n")
        if isinstance(reply, Pending):
            self._pending = reply
            reply.then(lambda outcome: self._resume(outcome, request.keep_alive))
        else:
            self._end(reply, keep_alive=request.keep_alive)

    def _resume(self, outcome: Outcome, keep_alive: bool) -> None:
        self._pending = None
        self._end(outcome, keep_alive=keep_alive)
        self._serve()

    def _end(self, outcome: Outcome, *, keep_alive: bool) -> None:
        transport = self._transport
        if transport is None:
            return
        match outcome:
            case Answer():
                transport.write(outcome.encoded(keep_alive=keep_alive))
                if not keep_alive:
                    transport.close()
            case Hangup():
                transport.abort()
            case _:
                assert_never(outcome)
