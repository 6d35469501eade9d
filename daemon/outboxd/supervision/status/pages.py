"""The status as bytes to answer with, made once for all who ask within a second."""

from collections.abc import Callable

import msgspec

from outboxd.supervision.status.model import Status
from outboxd.supervision.status.page import page

_encoder = msgspec.json.Encoder()


class StatusPages:
    """Implements http.StatusPages."""

    def __init__(self, now: Callable[[], Status]) -> None:
        self._now = now
        self._page: tuple[Status, bytes] | None = None

    def page(self) -> bytes:
        """The page for people."""
        status = self._now()
        if self._page is None or self._page[0] is not status:
            self._page = (status, page(status).encode())
        return self._page[1]

    def document(self) -> bytes:
        """The same for programs."""
        return _encoder.encode(self._now())
