"""From JSON to a scripted fault; what cannot be is told in terms of what was sent."""

import difflib
import random
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

import msgspec

from outboxd.localaws.script.kinds import KINDS, AnyKind, Duplicate, Reorder, hits
from outboxd.localaws.script.rule import ANY, Address

_EXAMPLE = '{"fault": "throttle", "operations": "SendMessageBatch", "count": 3}'
_ADDRESS = Address.__struct_fields__


class Unscriptable(ValueError):
    """This is no fault that can be staged; the text says what to write instead."""


class Scripted(NamedTuple):
    """A fault and whom it is meant for."""

    kind: AnyKind
    address: Address


def decoded(body: bytes, operations: Collection[str]) -> Scripted:
    """The fault that a request asks for; `operations` are all there are. Raises Unscriptable."""
    try:
        given = msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise Unscriptable(f"send a JSON object such as {_EXAMPLE}: {error}") from None
    kind_type = _kind_type(given)
    own = set(kind_type.__struct_fields__)
    for name in given:
        if name != "fault" and name not in own and name not in _ADDRESS:
            known = sorted([*own, *_ADDRESS])
            raise Unscriptable(f"{given['fault']} has no setting {name!r}{_nearest(name, known)}")
    kind: AnyKind = _converted(
        {name: value for name, value in given.items() if name == "fault" or name in own}, kind_type
    )
    address = _address(
        {name: value for name, value in given.items() if name in _ADDRESS}, operations
    )
    _check(kind, address)
    return Scripted(kind, address)


def _kind_type(given: dict[str, Any]) -> type[AnyKind]:
    name = given.get("fault")
    if name is None:
        raise Unscriptable(f"`fault` is missing: one of {', '.join(KINDS)}")
    if not isinstance(name, str) or name not in KINDS:
        raise Unscriptable(f"there is no fault {name!r}{_nearest(str(name), KINDS)}")
    return KINDS[name]


def _address(given: dict[str, Any], known: Collection[str]) -> Address:
    if isinstance(given.get("operations"), str):
        given = {**given, "operations": [given["operations"]]}
    # Drawn here, so that it is told with the fault and the same run can be had again.
    given = {"seed": random.SystemRandom().getrandbits(32), **given}
    address: Address = _converted(given, Address)
    if not address.operations:
        raise Unscriptable(f"`operations` is empty: name some, or {ANY!r}")
    for name in address.operations:
        if name != ANY and name not in known:
            raise Unscriptable(f"there is no operation {name!r}{_nearest(name, known)}")
    return address


def _converted(given: dict[str, Any], into: Any) -> Any:
    try:
        return msgspec.convert(given, into)
    except msgspec.ValidationError as error:
        raise Unscriptable(str(error).replace("`$.", "`")) from None


def _check(kind: AnyKind, address: Address) -> None:
    """What only the fault and its address together can do wrong."""
    fault = str(kind.__struct_config__.tag)
    for name in address.operations:
        if name != ANY and not hits(kind, name):
            allowed = ", ".join(sorted(filter(lambda each: hits(kind, each), kind.hits or ())))
            raise Unscriptable(f"{fault} cannot take hold of {name}, only of {allowed}")
    if isinstance(kind, Duplicate | Reorder) and address.queue.endswith(".fifo"):
        raise Unscriptable(f"{fault} is for standard queues: FIFO queues keep their order")
    if isinstance(kind, Reorder) and address.containing is not None:
        raise Unscriptable("reorder has no setting 'containing': it is about several messages")


def _nearest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name[:100], list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(known)}"
