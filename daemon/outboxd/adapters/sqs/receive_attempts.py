"""Ids for the receives from a FIFO queue, so that one whose answer was lost can be repeated."""

from uuid import uuid4


class ReceiveAttempts:
    """A new id for each receive, and the same one again after a receive without an answer.

    What a lost answer held is in flight, and locks its message groups until its visibility timeout
    ends. A receive that repeats the attempt id within five minutes is given the same messages under
    the same receipt handles, and their timeout starts anew (ReceiveMessage, API reference). That
    holds as long as none of them was deleted, changed or visible again in between; otherwise, and
    where a server knows nothing of attempts, it is a receive like any other: nothing is worse than
    with an id of its own.
    """

    def __init__(self) -> None:
        self._id = ""
        self._limit = 0
        self._lost = False

    def begin(self, limit: int) -> str:
        """The id for a receive of up to `limit` messages.

        One that asks for fewer than the lost one did has an id of its own: the documentation does
        not say that a repetition heeds its own limit, and who asked for one has no room for ten.
        """
        if not self._lost or limit < self._limit:
            self._id = uuid4().hex
        self._limit = limit
        self._lost = True
        return self._id

    def answered(self) -> None:
        """The receive that was begun last has brought its messages."""
        self._lost = False
