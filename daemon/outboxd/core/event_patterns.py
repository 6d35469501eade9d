"""Globs on event types, in the words of SNS filter policies and EventBridge patterns."""

import re
from collections.abc import Sequence
from typing import Any

_UNKNOWN = re.compile(r"[?\[]")


class Untranslatable(ValueError):
    """AWS has no words for this glob; the text says which part of it."""


def conditions(globs: Sequence[str], *, wildcards: bool) -> list[Any] | None:
    """The conditions that a value has to meet one of; None if every value does.

    `wildcards`: whether a star may stand elsewhere than at one end. EventBridge has an operator for
    that, SNS has none ("Filter policy operators", SNS developer guide). Raises Untranslatable.
    """
    translated = [_condition(glob, wildcards=wildcards) for glob in dict.fromkeys(globs)]
    return None if None in translated or not translated else translated


def _condition(glob: str, *, wildcards: bool) -> Any:
    """One glob; None for one that everything matches."""
    if unknown := _UNKNOWN.search(glob):
        raise Untranslatable(f'"{unknown[0]}" in "{glob}": AWS matches by * only')
    pattern = re.sub(r"\*+", "*", glob)
    if "*" not in pattern:
        return pattern
    if pattern == "*":
        return None
    if pattern.count("*") == 1 and pattern.endswith("*"):
        return {"prefix": pattern[:-1]}
    if pattern.count("*") == 1 and pattern.startswith("*"):
        return {"suffix": pattern[1:]}
    if not wildcards:
        raise Untranslatable(f'"{glob}": SNS knows a * at the beginning or at the end only')
    return {"wildcard": pattern.replace("\\", "\\\\")}
