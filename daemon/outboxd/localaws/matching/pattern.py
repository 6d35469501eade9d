"""A pattern in its checked form, and what it matches."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from outboxd.localaws.matching.operators import PatternError, Test, equal, named
from outboxd.localaws.matching.values import Number, Scalar

OR = "$or"
_ABSENT: Any = object()


class Leaf(NamedTuple):
    """The alternatives for one field, of which "no value" can be one."""

    tests: tuple[Test, ...]
    present: bool
    absent: bool

    def matches(self, value: Any) -> bool:
        scalars = list(_scalars(value))
        if not scalars:
            return self.absent
        return self.present or any(test(found) for found in scalars for test in self.tests)


class Pattern(NamedTuple):
    """All fields must match, and of each `$or` one of its patterns."""

    fields: dict[str, "Leaf | Pattern"]
    choices: tuple[tuple["Pattern", ...], ...]

    def matches(self, value: Any) -> bool:
        """Of a list, one element has to match as a whole; what is no object has no fields."""
        if isinstance(value, list) and value:
            return any(self.matches(each) for each in value)
        members = value if isinstance(value, dict) else {}
        return all(
            node.matches(members.get(name, _ABSENT)) for name, node in self.fields.items()
        ) and all(any(each.matches(members) for each in choice) for choice in self.choices)


def compiled(content: Any, *, numbers_as_written: bool) -> Pattern:
    """From JSON decoded by `values.decoded`. Raises PatternError."""
    if not isinstance(content, dict):
        raise PatternError("Filter is not an object")
    if not content:
        raise PatternError("Empty objects are not allowed")
    fields: dict[str, Leaf | Pattern] = {}
    choices: list[tuple[Pattern, ...]] = []
    for name, value in content.items():
        match value:
            case list() if name == OR:
                choices.append(_choice(value, numbers_as_written))
            case dict():
                fields[name] = compiled(value, numbers_as_written=numbers_as_written)
            case list():
                fields[name] = _leaf(name, value, numbers_as_written)
            case _:
                raise PatternError(f"{name!r} must be an object or an array")
    return Pattern(fields, tuple(choices))


def _choice(patterns: list[Any], numbers_as_written: bool) -> tuple[Pattern, ...]:
    if len(patterns) < 2:
        raise PatternError("$or must be an array of at least two patterns")
    return tuple(compiled(each, numbers_as_written=numbers_as_written) for each in patterns)


def _leaf(name: str, alternatives: list[Any], numbers_as_written: bool) -> Leaf:
    if not alternatives:
        raise PatternError(f"Empty arrays are not allowed, as that of {name!r}")
    tests: list[Test] = []
    present = absent = False
    for alternative in alternatives:
        match alternative:
            case {"exists": bool() as wanted} if len(alternative) == 1:
                present, absent = present or wanted, absent or not wanted
            case {"exists": _}:
                raise PatternError("exists match pattern must be either true or false")
            case dict() if len(alternative) == 1:
                ((operator, operand),) = alternative.items()
                tests.append(named(operator, operand))
            case str() | Number() | bool() | None:
                tests.append(equal(alternative, numbers_as_written=numbers_as_written))
            case _:
                raise PatternError(f"Only one key allowed in match expression, see {name!r}")
    return Leaf(tuple(tests), present, absent)


def _scalars(value: Any) -> Iterator[Scalar]:
    """The values of a field; an object has none, as only leaves are looked at."""
    if isinstance(value, list):
        for each in value:
            yield from _scalars(each)
    elif value is not _ABSENT and not isinstance(value, dict):
        yield value
