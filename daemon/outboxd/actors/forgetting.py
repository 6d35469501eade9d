"""Which requests to forget a lease still wait for a call that is on its way."""

from collections.abc import Set

from outboxd.channels.protocol import NO_ANSWER, Address, Forget, Forgotten


class Forgetting:
    """Answers a `Forget` once no extension of its leases can arrive any more.

    An extension that arrived after a retry delay or a release had been set would overwrite it.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[Forgotten, set[tuple[Address, int]]]] = []

    def ask(
        self, request: Forget, in_flight: frozenset[tuple[Address, int]]
    ) -> tuple[Forgotten, ...]:
        """The answer, if there is nothing to wait for."""
        if request.correlation == NO_ANSWER:
            return ()
        answer = Forgotten(request.owner, request.correlation)
        if not in_flight:
            return (answer,)
        self._waiting.append((answer, set(in_flight)))
        return ()

    def landed(self, keys: Set[tuple[Address, int]]) -> tuple[Forgotten, ...]:
        """A call with these leases has returned; the answers that waited for nothing else."""
        for _, in_flight in self._waiting:
            in_flight -= keys
        answers = tuple(answer for answer, in_flight in self._waiting if not in_flight)
        self._waiting = [(answer, in_flight) for answer, in_flight in self._waiting if in_flight]
        return answers
