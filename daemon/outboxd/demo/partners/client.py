"""Questions to the partners, and faults for them."""

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from outboxd.demo.errors import DemoError
from outboxd.demo.partners.book import Accepted, Counts, Request, Service
from outboxd.demo.partners.faults import Fault, Told

TIMEOUT_SECONDS = 10.0

T = TypeVar("T")


class Partners:
    """The partners that serve at `endpoint`, in this process or another."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self._address = urlsplit(endpoint).netloc

    def base_url(self, service: Service) -> str:
        """What the shop's configuration calls `base_url`."""
        return f"{self.endpoint}/{service}"

    def counts(self) -> dict[Service, Counts]:
        """How many requests there were, by service."""
        return self._ask("GET", "counts", dict[Service, Counts])

    def accepted(self, service: Service) -> list[Accepted]:
        """What a service has accepted, oldest first."""
        return self._ask("GET", f"accepted?service={service}", list[Accepted])

    def requests(self) -> list[Request]:
        """The last requests, oldest first, whatever became of them."""
        return self._ask("GET", "requests", list[Request])

    def add(self, fault: Fault) -> int:
        """Script a fault; its number."""
        return self._ask("POST", "faults", dict[str, int], msgspec.json.encode(fault))["id"]

    def faults(self) -> list[Told]:
        """The faults that are scripted, and how often each has fired."""
        return self._ask("GET", "faults", list[Told])

    def clear(self, number: int | None = None) -> None:
        """Forget a fault, or all."""
        self._ask("DELETE", "faults" if number is None else f"faults/{number}", dict[str, Any])

    @contextmanager
    def fault(self, fault: Fault) -> Iterator[int]:
        """A fault while the block lasts; its number."""
        number = self.add(fault)
        try:
            yield number
        finally:
            self.clear(number)

    def _ask(self, method: str, path: str, kind: type[T], body: bytes | None = None) -> T:
        # http.client, which knows no proxies: the partners are on this machine.
        connection = http.client.HTTPConnection(self._address, timeout=TIMEOUT_SECONDS)
        try:
            connection.request(method, f"/_partners/{path}", body)
            response = connection.getresponse()
            answer = response.read()
        finally:
            connection.close()
        if response.status >= 400:
            raise DemoError(f"the partners refused this: {answer.decode(errors='replace')}")
        return msgspec.json.decode(answer, type=kind)
