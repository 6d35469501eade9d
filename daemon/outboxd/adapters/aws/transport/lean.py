"""Sends a client's prepared requests, or leaves them to the SDK."""

import logging
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from ssl import SSLError as TlsError
from typing import Any

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import (
    BotoCoreError,
    ConnectionClosedError,
    HTTPClientError,
    ReadTimeoutError,
    SSLError,
)

from outboxd.adapters.aws.transport.answers import Answer, Malformed
from outboxd.adapters.aws.transport.connection import Connection, NotTaken, Unanswered
from outboxd.adapters.aws.transport.idle import IdleConnections
from outboxd.adapters.aws.transport.opening import Opener
from outboxd.adapters.aws.transport.requests import message_of
from outboxd.adapters.aws.transport.targets import Target, target_of

log = logging.getLogger(__name__)

_MOST_ROADS = 16
"""A client of SQS, SNS or EventBridge sends everything to one URL."""


@dataclass(frozen=True, slots=True)
class Road:
    """All there is to know of a URL."""

    target: Target
    opener: Opener
    idle: IdleConnections


class LeanTransport:
    """Sends the requests of one client, from any number of threads.

    A request is written to one connection only, except if not one byte of it was taken: whether a
    server has acted on what it did not answer cannot be known. Retries are the SDK's to decide.
    """

    def __init__(
        self,
        *,
        connect_seconds: float,
        read_seconds: float,
        keepalive: bool,
        connections: int,
        verify: str | bool,
        proxied: Callable[[str], bool],
    ) -> None:
        """`connections`: how many are kept while idle; `proxied`: whether a URL has a proxy."""
        self._connect_seconds = connect_seconds
        self._read_seconds = read_seconds
        self._keepalive = keepalive
        self._connections = connections
        self._verify = verify
        self._proxied = proxied
        self._roads: dict[str, Road | None] = {}
        self._closing: list[Callable[[], None]] = []

    def send(self, request: AWSPreparedRequest, **_: object) -> AWSResponse | None:
        """The handler of the SDK's `before-send` event: None has the SDK send it.

        Raises what the SDK's own transport raises.
        """
        road = self._road(request.url)
        message = None if road is None else message_of(request, road.target)
        if road is None or message is None:
            return None
        answer = self._carry(message, road, request)
        headers: Any = answer.headers  # any mapping will do
        return AWSResponse(request.url, answer.status, headers, _Body(answer.body))

    def close(self) -> None:
        """Close idle connections now, and those in use after their answers."""
        for close in self._closing:
            close()

    def _carry(self, message: bytes, road: Road, request: AWSPreparedRequest) -> Answer:
        connection = road.idle.take()
        if connection is not None:
            try:
                return _exchange(connection, message, road, request)
            except NotTaken:
                pass  # closed between our look at it and the first byte
        connection = self._connected(road, request)
        try:
            return _exchange(connection, message, road, request)
        except NotTaken as error:
            raise ConnectionClosedError(
                endpoint_url=request.url, request=request, error=error.__cause__
            ) from error

    def _connected(self, road: Road, request: AWSPreparedRequest) -> Connection:
        try:
            return Connection(road.opener.open(), self._read_seconds)
        except BotoCoreError:
            raise
        except Exception as error:
            raise _of_the_sdk(error, request) from error

    def _road(self, url: str) -> Road | None:
        try:
            return self._roads[url]
        except KeyError:
            road = self._new_road(url) if len(self._roads) < _MOST_ROADS else None
            # Another thread may have been faster; everybody uses the first one.
            return self._roads.setdefault(url, road)

    def _new_road(self, url: str) -> Road | None:
        target = target_of(url)
        if target is None:
            return None
        if self._proxied(url):
            log.info(
                "a proxy is configured: the AWS SDK's own transport is used",
                extra={"host": target.host},
            )
            return None
        idle = IdleConnections(self._connections)
        # Also when a client is dropped without having been closed.
        self._closing.append(weakref.finalize(self, idle.close))
        opener = Opener(
            target,
            url,
            connect_seconds=self._connect_seconds,
            keepalive=self._keepalive,
            verify=self._verify,
        )
        return Road(target, opener, idle)


def _exchange(
    connection: Connection, message: bytes, road: Road, request: AWSPreparedRequest
) -> Answer:
    """Gives the connection back after a complete answer, and closes it after anything else."""
    try:
        answer = connection.exchange(message)
    except NotTaken:
        connection.close()
        raise
    except Exception as error:
        connection.close()
        raise _of_the_sdk(error, request) from error
    except BaseException:
        connection.close()
        raise
    if connection.reusable:
        road.idle.give_back(connection)
    else:
        connection.close()
    return answer


def _of_the_sdk(error: Exception, request: AWSPreparedRequest) -> HTTPClientError | SSLError:
    """The error that the SDK's own transport has for this; its retries and adapters.aws.outages
    judge by it. Time-outs while writing count as a closed connection there as well."""
    match error:
        case Unanswered():
            return ReadTimeoutError(endpoint_url=request.url, error=error)
        case TlsError():
            return SSLError(endpoint_url=request.url, error=error)
        case OSError() | Malformed():
            return ConnectionClosedError(endpoint_url=request.url, request=request, error=error)
        case _:
            return HTTPClientError(request=request, error=error)


class _Body:
    """The body as AWSResponse wants to read it."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self) -> tuple[bytes, ...]:
        return (self._content,)
