"""Faults on cue: slow answers, refusals, connections that are cut, for a share of the requests."""

from random import Random
from typing import Annotated, Literal

from msgspec import Meta, Struct

Status = Annotated[int, Meta(ge=200, le=599)]


class Fault(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to do to requests of a service, "*" for all.

    First the request waits `delay_seconds`. Then it is answered with `status` and `words` (and
    `retry_after` as header), or its connection is cut (`drop`); with neither it goes on as usual.
    `when` says whether the partner has done its work by then: after it, the client cannot know.

    `share` of the requests are met, drawn with `seed`, and `count` of them at most.
    """

    service: Literal["courier", "whatsapp", "push", "*"] = "*"
    status: Status | None = None
    retry_after: str | None = None
    words: str = "a fault on cue"
    drop: bool = False
    delay_seconds: Annotated[float, Meta(ge=0, le=3600)] = 0.0
    when: Literal["before", "after"] = "before"
    share: Annotated[float, Meta(ge=0, le=1)] = 1.0
    count: Annotated[int, Meta(ge=1)] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.drop and self.status is not None:
            raise ValueError("`drop` cuts the connection, so that no `status` can be told")
        if not self.drop and self.status is None and not self.delay_seconds:
            raise ValueError("nothing would happen: set `status`, `drop` or `delay_seconds`")


class Told(Struct, frozen=True):
    """A fault as it stands; `fired` is how many requests it has met."""

    id: int
    fault: Fault
    fired: int


class _Scripted:
    def __init__(self, number: int, fault: Fault) -> None:
        self.number = number
        self.fault = fault
        self.fired = 0
        self._dice = Random(fault.seed)

    def meets(self, service: str) -> bool:
        fault = self.fault
        if fault.service not in ("*", service):
            return False
        if fault.count is not None and self.fired >= fault.count:
            return False
        if self._dice.random() >= fault.share:
            return False
        self.fired += 1
        return True


class Script:
    """The faults that are scripted; used from one event loop only."""

    def __init__(self) -> None:
        self._faults: dict[int, _Scripted] = {}
        self._last = 0

    def add(self, fault: Fault) -> int:
        """The fault's number."""
        self._last += 1
        self._faults[self._last] = _Scripted(self._last, fault)
        return self._last

    def clear(self, number: int | None = None) -> list[int]:
        """Forget one fault, or all; the numbers of those that there were."""
        numbers = [each for each in self._faults if number in (None, each)]
        for each in numbers:
            del self._faults[each]
        return numbers

    def told(self) -> list[Told]:
        """All faults, oldest first."""
        return [Told(each.number, each.fault, each.fired) for each in self._faults.values()]

    def meeting(self, service: str) -> Fault | None:
        """The oldest fault that wants this request; it counts as fired."""
        return next((each.fault for each in self._faults.values() if each.meets(service)), None)
