"""What a pattern may ask of one value: equality and the named operators."""

import operator
from collections.abc import Callable
from functools import partial
from ipaddress import ip_address, ip_network
from typing import Any

from outboxd.localaws.matching.values import Number, Scalar
from outboxd.localaws.matching.wildcards import expression

Test = Callable[[Scalar], bool]


class PatternError(ValueError):
    """This is no pattern; the text says what is wrong with it, in a sentence without a stop."""


def equal(wanted: Scalar, *, numbers_as_written: bool) -> Test:
    """EventBridge compares numbers character by character (User Guide, "Comparison operators"),
    SNS by their value."""
    match wanted:
        case Number(text, value):
            if numbers_as_written:
                return lambda found: isinstance(found, Number) and found.text == text
            return partial(_has_value, value)
        case bool() | None:
            # Not by ==, by which True is 1.
            return lambda found: found is wanted
        case str():
            return lambda found: found == wanted


def named(name: str, operand: Any) -> Test:
    """The test of an operator such as `{"prefix": "a"}`. Raises PatternError."""
    make = _OPERATORS.get(name)
    if make is None:
        known = ", ".join(sorted([*_OPERATORS, "exists"]))
        raise PatternError(f"Unrecognized match type {name}; there are {known}")
    return make(operand)


def _prefix(operand: Any) -> Test:
    return _on_text("prefix", operand, str.startswith)


def _suffix(operand: Any) -> Test:
    return _on_text("suffix", operand, str.endswith)


def _on_text(name: str, operand: Any, holds: Callable[[str, str], bool]) -> Test:
    match operand:
        case str():
            return lambda found: isinstance(found, str) and holds(found, operand)
        case {"equals-ignore-case": str() as folded} if len(operand) == 1:
            wanted = folded.lower()
            return lambda found: isinstance(found, str) and holds(found.lower(), wanted)
        case _:
            raise PatternError(f"{name} match pattern must be a string")


def _ignoring_case(operand: Any) -> Test:
    wanted = _text("equals-ignore-case", operand).lower()
    return lambda found: isinstance(found, str) and found.lower() == wanted


def _wildcard(operand: Any) -> Test:
    try:
        pattern = expression(_text("wildcard", operand))
    except PatternError:
        raise
    except ValueError as error:
        raise PatternError(f"{error} in wildcard match pattern {operand!r}") from None
    return lambda found: isinstance(found, str) and pattern.fullmatch(found) is not None


def _cidr(operand: Any) -> Test:
    text = _text("cidr", operand)
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        raise PatternError(f"Malformed CIDR, {text!r} is no range of addresses") from None

    def holds(found: Scalar) -> bool:
        try:
            return isinstance(found, str) and ip_address(found) in network
        except ValueError:
            return False

    return holds


_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "=": operator.eq,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


def _numeric(operand: Any) -> Test:
    if not isinstance(operand, list) or len(operand) not in (2, 4):
        raise PatternError("Value of numeric must be an array of one or two comparisons")
    bounds: list[tuple[Callable[[float, float], bool], float]] = []
    for sign, bound in zip(operand[::2], operand[1::2], strict=True):
        if not isinstance(sign, str) or sign not in _COMPARISONS:
            raise PatternError(f"Unrecognized numeric range operator: {sign}")
        if not isinstance(bound, Number):
            raise PatternError(f"Value of {sign} must be numeric")
        bounds.append((_COMPARISONS[sign], bound.value))
    if len(bounds) == 2 and not (operand[0] in (">", ">=") and operand[2] in ("<", "<=")):
        raise PatternError("A numeric range is a lower bound and an upper bound, in this order")
    if len(bounds) == 2 and bounds[0][1] >= bounds[1][1]:
        raise PatternError("Bottom must be less than top")
    return lambda found: (
        isinstance(found, Number) and all(holds(found.value, bound) for holds, bound in bounds)
    )


def _anything_but(operand: Any) -> Test:
    match operand:
        case str() | Number():
            refused = _equal_to_any([operand])
        case list() if operand:
            refused = _equal_to_any(operand)
        case dict() if len(operand) == 1:
            ((name, inner),) = operand.items()
            refused = _nested(name, inner)
        case _:
            raise PatternError("Value of anything-but must be an array or single string/number")
    return lambda found: not refused(found)


def _nested(name: str, operand: Any) -> Test:
    if name not in ("prefix", "suffix", "equals-ignore-case", "wildcard"):
        raise PatternError(f"Unsupported anything-but pattern: {name}")
    operands = operand if isinstance(operand, list) else [operand]
    if not operands or "" in operands:
        # Each text starts with the empty one, so that nothing would be left to match.
        raise PatternError(f"Null {name} not allowed in anything-but")
    tests = [named(name, each) for each in operands]
    return lambda found: any(test(found) for test in tests)


def _equal_to_any(values: list[Any]) -> Test:
    texts = all(isinstance(value, str) for value in values)
    if not texts and not all(isinstance(value, Number) for value in values):
        raise PatternError("Inside anything but list, either all values are numbers or strings")
    tests = [equal(value, numbers_as_written=False) for value in values]
    return lambda found: any(test(found) for test in tests)


def _has_value(value: float, found: Scalar) -> bool:
    return isinstance(found, Number) and found.value == value


def _text(name: str, operand: Any) -> str:
    if not isinstance(operand, str):
        raise PatternError(f"{name} match pattern must be a string")
    return operand


_OPERATORS: dict[str, Callable[[Any], Test]] = {
    "prefix": _prefix,
    "suffix": _suffix,
    "equals-ignore-case": _ignoring_case,
    "wildcard": _wildcard,
    "cidr": _cidr,
    "numeric": _numeric,
    "anything-but": _anything_but,
}
