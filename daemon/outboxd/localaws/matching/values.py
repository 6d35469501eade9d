"""JSON as patterns see it: numbers keep the way in which they are written."""

import json
from typing import Any, NamedTuple, NoReturn


class Number(NamedTuple):
    """A number of JSON; 300, 300.0 and 3e2 are one value and three texts."""

    text: str
    value: float


Scalar = str | Number | bool | None


def decoded(text: str) -> Any:
    """Raises ValueError for what is not JSON."""
    try:
        return json.loads(text, parse_int=number, parse_float=number, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def number(text: str) -> Number:
    """Raises ValueError for what is not a number."""
    return Number(text, float(text))


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def encoded(value: Any) -> str:
    """The JSON of a decoded value, with its numbers as they were written."""
    match value:
        case Number(text):
            return text
        case dict():
            members = (f"{encoded(name)}:{encoded(each)}" for name, each in value.items())
            return "{" + ",".join(members) + "}"
        case list():
            return "[" + ",".join(map(encoded, value)) + "]"
        case _:
            return json.dumps(value, ensure_ascii=False)
