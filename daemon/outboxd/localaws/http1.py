"""Requests and answers of HTTP/1.1, without any input or output."""

from http import HTTPStatus
from typing import NamedTuple

# 1 MiB of message text is at most 3 MiB of JSON (a two-byte character is escaped in six bytes);
# attributes in base64 and the frame around them fit in the rest.
MAX_BODY_BYTES = 8 * 1024 * 1024
MAX_HEAD_BYTES = 64 * 1024

_STATUS_LINES = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n" for status in HTTPStatus
}


class Request(NamedTuple):
    """One request; header names are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    keep_alive: bool


class Answer(NamedTuple):
    """One response; the length header is added when it is written."""

    status: int
    content_type: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()

    def encoded(self, *, keep_alive: bool) -> bytes:
        head = [
            _STATUS_LINES[self.status],
            f"content-type: {self.content_type}\r\ncontent-length: {len(self.body)}\r\n",
        ]
        head.extend(f"{name}: {value}\r\n" for name, value in self.headers)
        head.append("\r\n" if keep_alive else "connection: close\r\n\r\n")
        return "".join(head).encode("latin-1") + self.body


class BadRequest(Exception):
    """These bytes are no request this server takes; answer `status` and close."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status

    def answer(self) -> Answer:
        return Answer(self.status, "text/plain", f"{self}\n".encode())


class RequestParser:
    """Cuts the bytes of one connection into requests."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._head: tuple[Request, int] | None = None

    @property
    def buffered(self) -> int:
        """Bytes received but not yet part of a request."""
        return len(self._buffer)

    def feed(self, data: bytes) -> None:
        self._buffer += data

    def next_request(self) -> Request | None:
        """The next whole request, None until there is one. Raises BadRequest."""
        if self._head is None:
            self._head = self._next_head()
            if self._head is None:
                return None
        request, length = self._head
        if len(self._buffer) < length:
            return None
        body = bytes(self._buffer[:length])
        del self._buffer[:length]
        self._head = None
        return request._replace(body=body)

    def _next_head(self) -> tuple[Request, int] | None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > MAX_HEAD_BYTES:
                raise BadRequest(431, f"the headers exceed {MAX_HEAD_BYTES} bytes")
            return None
        head = self._buffer[:end].decode("latin-1")
        del self._buffer[: end + 4]
        return _parse_head(head)


def _parse_head(head: str) -> tuple[Request, int]:
    first, *lines = head.lstrip("\r\n").split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise BadRequest(400, "the first line is not `METHOD PATH HTTP/1.1`")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise BadRequest(400, "a header line has no colon")
        headers[name.lower()] = value.strip()
    method, path, version = parts
    request = Request(method, path, headers, b"", _keeps_alive(version, headers))
    return request, _body_length(headers)


def _keeps_alive(version: str, headers: dict[str, str]) -> bool:
    connection = headers.get("connection", "").lower()
    return connection == "keep-alive" if version == "HTTP/1.0" else connection != "close"


def _body_length(headers: dict[str, str]) -> int:
    if "transfer-encoding" in headers:
        raise BadRequest(501, "send the body with content-length, not with transfer-encoding")
    text = headers.get("content-length", "0")
    if not (text.isascii() and text.isdigit()):
        raise BadRequest(400, f"content-length {text!r} is not a number")
    length = int(text)
    if length > MAX_BODY_BYTES:
        raise BadRequest(413, f"the body exceeds {MAX_BODY_BYTES} bytes")
    return length
