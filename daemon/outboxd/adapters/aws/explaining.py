"""Turns errors of the AWS SDK into ours around a piece of work that somebody waits for."""

from collections.abc import Iterator
from contextlib import contextmanager

from outboxd.adapters.aws.outages import AWS_ERRORS, outage


class Explaining:
    """`with explained("creating topic orders"):` raises Unavailable, with that and what to do."""

    def __init__(self, thing: str, endpoint_url: str | None) -> None:
        """`thing`: what does not exist when AWS says so; `endpoint_url`: the configured one."""
        self._thing = thing
        self._endpoint_url = endpoint_url

    @contextmanager
    def __call__(self, doing: str) -> Iterator[None]:
        try:
            yield
        except AWS_ERRORS as error:
            raise outage(
                error, doing, thing=self._thing, endpoint_url=self._endpoint_url
            ) from error
