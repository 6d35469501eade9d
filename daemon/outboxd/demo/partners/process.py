"""The partners in a process of their own, while a block lasts."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from outboxd.demo.neighbours import neighbour
from outboxd.demo.partners.client import Partners


@contextmanager
def running_partners(log: Path) -> Iterator[Partners]:
    """New partners, that nobody has asked anything yet; `log` takes what they have to say."""
    with neighbour("outboxd.demo.partners", ["--port", "0"], log) as endpoint:
        yield Partners(endpoint)
