"""From the form of a query request to the JSON that a service of the newer protocols is sent.

`Entries.member.1.Id` becomes a list of objects, `Attributes.entry.1.key` a map. So an operation,
and a fault that takes hold of it, never sees which protocol the client speaks.
"""

from typing import Any, NamedTuple
from urllib.parse import parse_qsl

# An empty list is sent as an empty text, and looks like one.
_LISTS = frozenset({"PublishBatchRequestEntries", "Tags", "TagKeys"})
_NAMES, _VALUES = ("key", "Name"), ("value", "Value")


class Form(NamedTuple):
    """Which action of which service is asked for, and with which parameters."""

    action: str
    version: str
    content: dict[str, Any]


def parsed(body: bytes) -> Form | None:
    """None for what is no request of this protocol."""
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, errors="strict")
    except ValueError:
        return None
    members: dict[str, Any] = {}
    for path, value in pairs:
        _put(members, path.split("."), value)
    action, version = members.pop("Action", ""), members.pop("Version", "")
    if not isinstance(action, str) or not isinstance(version, str):
        return None
    return Form(action, version, {name: _plain(name, value) for name, value in members.items()})


def _put(members: dict[str, Any], path: list[str], value: str) -> None:
    for step in path[:-1]:
        inner = members.get(step)
        if not isinstance(inner, dict):
            inner = members[step] = {}
        members = inner
    members[path[-1]] = value


def _plain(name: str, value: Any) -> Any:
    match value:
        case str():
            return [] if name in _LISTS and not value else value
        case {"member": dict() as numbered} if len(value) == 1:
            return [_plain("", each) for each in _in_order(numbered)]
        case {"entry": dict() as numbered} if len(value) == 1:
            return dict(_pair(entry) for entry in _in_order(numbered))
        case _:
            return {name: _plain(name, each) for name, each in value.items()}


def _pair(entry: Any) -> tuple[str, Any]:
    fields = entry if isinstance(entry, dict) else {}
    name = next((fields[name] for name in _NAMES if name in fields), "")
    value = next((fields[name] for name in _VALUES if name in fields), "")
    return str(name), _plain("", value)


def _in_order(numbered: dict[str, Any]) -> list[Any]:
    return [numbered[number] for number in sorted(numbered, key=_position)]


def _position(number: str) -> tuple[int, str]:
    return (int(number), "") if number.isdecimal() else (0, number)
