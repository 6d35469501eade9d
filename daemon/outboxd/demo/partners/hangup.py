"""Cuts a connection instead of answering, which ASGI has no word for."""

from typing import Any

from starlette.types import Receive, Scope
from uvicorn.protocols.http.h11_impl import H11Protocol

_ABORT = "outboxd.abort"


class HangupProtocol(H11Protocol):
    """uvicorn's own, whose application is also told how to cut its connection."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        app = self.app

        async def with_abort(scope: Any, receive: Any, send: Any) -> None:
            await app({**scope, _ABORT: self.transport.abort}, receive, send)

        self.app = with_abort


async def hang_up(scope: Scope, receive: Receive) -> None:
    """Reset the connection of this request; returns when that is known to the server, which would
    otherwise take the silence for a bug and answer 500."""
    scope[_ABORT]()
    while (await receive())["type"] != "http.disconnect":
        pass
