"""One keep-alive connection: writes a request and reads its answer."""

import os
import select
import socket
import ssl

from outboxd.adapters.aws.transport.answers import Answer, AnswerReader
from outboxd.core.clock import boottime

_RECEIVE_BYTES = 65_536
"""More than a record of TLS has, so that nothing stays behind where poll() does not see it."""


class NotTaken(Exception):
    """Not one byte of the request has left this process: it may go over another connection."""


class Unanswered(Exception):
    """The server has not said anything for the whole of the read timeout."""


class Connection:
    """A connection of this process that one thread uses at a time.

    After any error it must be closed: what is left on it would be taken for the next answer.
    """

    def __init__(self, connected: socket.socket, read_seconds: float) -> None:
        """`read_seconds`: the longest silence while reading, and the longest that writing takes."""
        self._socket = connected
        self._seconds = read_seconds
        connected.settimeout(read_seconds)
        self._reader = AnswerReader()
        self._readable = select.poll()
        self._readable.register(connected, select.POLLIN)
        self._process = os.getpid()
        self._idle_since = boottime()

    def exchange(self, message: bytes) -> Answer:
        """Raises NotTaken, Unanswered, Malformed, TooLong, or OSError."""
        self._write(message)
        reader = self._reader
        reader.begin()
        while not reader.complete:
            try:
                data = self._socket.recv(_RECEIVE_BYTES)
            except TimeoutError as error:
                raise Unanswered(f"silent for {self._seconds:g} seconds") from error
            if data:
                reader.feed(data)
            else:
                reader.end()
        return reader.answer()

    @property
    def reusable(self) -> bool:
        """Whether the last answer was complete and the server keeps the connection."""
        return self._reader.reusable

    def rest(self) -> None:
        """Idle from now on."""
        self._idle_since = boottime()

    def fresh(self, idle_seconds: float) -> bool:
        """Whether a request may still be sent: it is ours, was in use lately, and the server has
        neither closed it nor said anything unasked. urllib3 looks at the last of these only."""
        return (
            self._process == os.getpid()
            and boottime() - self._idle_since < idle_seconds
            and not self._readable.poll(0)
        )

    def close(self) -> None:
        self._socket.close()

    def _write(self, message: bytes) -> None:
        try:
            sent = self._socket.send(message)
        except OSError as error:
            # TLS may have passed on a part of a record before it failed; a plain socket has not.
            if isinstance(self._socket, ssl.SSLSocket) or isinstance(error, TimeoutError):
                raise
            raise NotTaken from error
        if sent < len(message):
            self._write_rest(memoryview(message)[sent:])

    def _write_rest(self, rest: memoryview) -> None:
        """All of it within the timeout: SSLSocket.sendall would allow as much for each record."""
        deadline = boottime() + self._seconds
        try:
            while rest:
                left = deadline - boottime()
                if left <= 0:
                    raise TimeoutError("the server does not read the request")
                self._socket.settimeout(left)
                rest = rest[self._socket.send(rest) :]
        except (BrokenPipeError, ConnectionResetError):
            # A server may answer and close before it has read everything ("413"), and its answer
            # is still there to be read; urllib3 does the same.
            pass
        finally:
            self._socket.settimeout(self._seconds)
