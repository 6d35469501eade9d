"""The control endpoint of a local AWS, from the outside."""

import http.client
from typing import Any
from urllib.parse import urlsplit

import msgspec

from outboxd.core.errors import OutboxdError

_SECONDS = 30.0


class ControlError(OutboxdError):
    """The local AWS refused a request to its control endpoint; the text says why."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


class ControlClient:
    """Asks and tells a local AWS what AWS itself has no call for. Blocks, for milliseconds."""

    def __init__(self, endpoint_url: str) -> None:
        self._address = urlsplit(endpoint_url).netloc

    def call(self, method: str, path: str, content: object = None) -> Any:
        """The decoded answer. Raises ControlError if it is a refusal, OSError without any."""
        # Not urllib: it would go through the proxy of the environment, even to 127.0.0.1.
        connection = http.client.HTTPConnection(self._address, timeout=_SECONDS)
        try:
            body = None if content is None else msgspec.json.encode(content)
            connection.request(method, f"/_localaws/{path}", body)
            response = connection.getresponse()
            answer = msgspec.json.decode(response.read())
        finally:
            connection.close()
        if response.status >= 400:
            raise ControlError(response.status, str(answer["error"]))
        return answer
