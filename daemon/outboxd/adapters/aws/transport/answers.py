"""Reads HTTP/1.1 answers from what arrives on a connection; llhttp, in C, parses them."""

from dataclasses import dataclass

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

MAX_HEAD_BYTES = 65_536
"""Of an answer whose headers are not complete, interim answers before it included; http.client
allows as much for a single line."""

MAX_ANSWER_BYTES = 67_108_864
"""Ten messages of 1 MiB are 60 MiB when a server writes each of their bytes as `\\u0000`."""


class Malformed(Exception):
    """What the server says is no answer, and nothing on this connection can be trusted."""


class TooLong(Exception):
    """The server goes on and on; another try would get as much."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server has answered, its headers in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class AnswerReader:
    """Reads one answer after another from a connection: `begin`, then `feed` or `end` until it is
    `complete`. Only `reusable` tells whether the connection may be asked again."""

    def __init__(self) -> None:
        self._parser = HttpResponseParser(self)
        self.begin()

    def begin(self) -> None:
        """Expect the answer to a request that has just been sent."""
        self.complete = False
        self.reusable = False
        self._status = 0
        self._headers: dict[str, str] = {}
        self._headed = False
        self._pieces: list[bytes] = []
        self._seen = 0

    def feed(self, data: bytes) -> None:
        """Some bytes have arrived. Raises Malformed or TooLong."""
        self._seen += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            # Whatever comes behind an answer is not an answer of ours, and no reason to lose it.
            self.reusable = False
            if not self.complete:
                raise Malformed(f"not HTTP/1.1: {error}") from error
        if self._seen > (MAX_ANSWER_BYTES if self._headed else MAX_HEAD_BYTES):
            raise TooLong(f"an answer of more than {self._seen} bytes")

    def end(self) -> None:
        """The server has closed the connection. Raises Malformed if it has not finished."""
        if not self._headed or self._framed():
            what = "in the middle of an answer" if self._seen else "without an answer"
            raise Malformed(f"the server closed the connection {what}")
        self.complete = True

    def answer(self) -> Answer:
        """What was read, once it is complete."""
        return Answer(self._status, self._headers, b"".join(self._pieces))

    def _framed(self) -> bool:
        """Whether the headers say where the body ends; else the connection's end does."""
        chunked = "chunked" in self._headers.get("transfer-encoding", "").lower()
        return chunked or "content-length" in self._headers

    # What llhttp calls.

    def on_message_begin(self) -> None:
        if self.complete:
            raise Malformed("an answer that nobody has asked for")

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._headed:
            return  # a trailer
        key = name.decode("latin-1").lower()
        text = value.decode("latin-1")
        before = self._headers.get(key)
        self._headers[key] = text if before is None else f"{before}, {text}"

    def on_headers_complete(self) -> None:
        self._status = self._parser.get_status_code()
        if self._status < 200:  # "100 Continue" and the like; the answer comes behind it
            self._headers = {}
        else:
            self._headed = True

    def on_body(self, data: bytes) -> None:
        self._pieces.append(data)

    def on_message_complete(self) -> None:
        if self._headed:
            self.complete = True
            # Known only here: llhttp begins the next message right after this.
            self.reusable = self._parser.should_keep_alive()
