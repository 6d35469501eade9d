"""What a setting may be, what was found instead, and what was probably meant, in words."""

import datetime
import difflib
import json
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, get_args, get_origin

from msgspec import Meta

LONGEST_SHOWN = 60


def expectation(annotation: Any) -> str:
    """The values that a type with its `Meta` allows: "an integer from 1 to 64"."""
    annotation, metas = unwrapped(annotation)
    for meta in metas:
        if meta.description is not None:
            return meta.description
    if get_origin(annotation) is Literal:
        return " or ".join(json.dumps(value) for value in get_args(annotation))
    if annotation is bool:
        return "true or false"
    if annotation is str:
        return f"a text{_lengths(metas)}"
    if annotation in (int, float):
        return f"{'an integer' if annotation is int else 'a number'}{_range(metas)}"
    if get_origin(annotation) is tuple:
        return f"an array{_lengths(metas, ' entries')}"
    if get_origin(annotation) is dict or isinstance(annotation, type):
        return "a table"
    return "a text, an integer, a number, true or false"


def finding(value: object, *, hide: bool) -> str:
    """What stands in the file, shortened; a hidden value is told by its kind alone."""
    match value:
        case dict():
            return "a table"
        case list():
            return "an array"
        case datetime.date() | datetime.time():
            return "a date or a time"
        case _ if hide:
            return f"{_kind(value)} (not shown)"
        case _:
            text = json.dumps(value, ensure_ascii=False)
            return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 3]}..."


def suggestion(unknown: str, known: Sequence[str]) -> str:
    """`; did you mean "…"?` when a known name is near enough, else nothing."""
    if len(unknown) > 200:  # the comparison is quadratic
        return ""
    near = difflib.get_close_matches(unknown, known, n=1)
    return f'; did you mean "{near[0]}"?' if near else ""


def unwrapped(annotation: Any) -> tuple[Any, tuple[Meta, ...]]:
    """A type without `Annotated` and without its `| None`, and the rules that came with it."""
    metas: list[Meta] = []
    while True:
        if get_origin(annotation) is Annotated:
            annotation, *extras = get_args(annotation)
            metas.extend(extra for extra in extras if isinstance(extra, Meta))
            continue
        alternatives = [part for part in get_args(annotation) if part is not type(None)]
        if type(None) in get_args(annotation) and len(alternatives) == 1:
            annotation = alternatives[0]
            continue
        return annotation, tuple(metas)


def _kind(value: object) -> str:
    match value:
        case bool():
            return "a boolean"
        case int():
            return "an integer"
        case float():
            return "a number"
        case _:
            return "a text"


def _range(metas: tuple[Meta, ...]) -> str:
    bounds = " and ".join(_bounds(metas))
    return f" {bounds}" if bounds else ""


def _bounds(metas: tuple[Meta, ...]) -> Iterator[str]:
    for meta in metas:
        if meta.ge is not None and meta.le is not None:
            yield f"from {_digits(meta.ge)} to {_digits(meta.le)}"
        elif meta.gt is not None and meta.le is not None:
            yield f"above {_digits(meta.gt)} and at most {_digits(meta.le)}"


def _digits(bound: float) -> str:
    """All of them: as 6.71089e+07 nobody would find out what is allowed."""
    return str(int(bound)) if bound == int(bound) else f"{bound:g}"


def _lengths(metas: tuple[Meta, ...], unit: str = " characters") -> str:
    for meta in metas:
        match meta.min_length, meta.max_length:
            case int(shortest), int(longest):
                return f" of {shortest} to {longest}{unit}"
            case 1, None:
                return " that is not empty"
            case None, int(longest):
                return f" of at most {longest}{unit}"
            case _:
                continue
    return ""
