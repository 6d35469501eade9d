"""`${NAME}` and `${NAME:-default}` inside the strings of a configuration."""

import re
from collections.abc import Mapping
from typing import NamedTuple

_REFERENCE = re.compile(
    r"\$(?P<escaped>\$\{)"
    r"|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}"
    r"|(?P<malformed>\$\{)"
)


class Expanded(NamedTuple):
    """A string after its references were replaced.

    `referenced` tells whether there were any; `problems` say which of them cannot be resolved.
    """

    text: str
    referenced: bool = False
    problems: tuple[str, ...] = ()


def expand(text: str, environ: Mapping[str, str]) -> Expanded:
    """Replace references by the environment's values, once: a value is never expanded again, so
    that a password may contain `${`.

    As in a shell, the default of `${NAME:-default}` also stands for an empty value. `$${` is a
    literal `${`; every other `$` stands for itself.
    """
    problems: list[str] = []
    references = 0

    def value(match: re.Match[str]) -> str:
        nonlocal references
        if match["escaped"] is not None:
            return "${"
        references += 1
        if match["malformed"] is not None:
            problems.append(
                "`${` begins no reference such as ${NAME} or ${NAME:-default}; "
                "write `$${` for a literal `${`"
            )
            return ""
        return _value_of(match, environ, problems)

    expanded = _REFERENCE.sub(value, text)
    return Expanded(expanded, references > 0, tuple(problems))


def _value_of(match: re.Match[str], environ: Mapping[str, str], problems: list[str]) -> str:
    name, default = match["name"], match["default"]
    value = environ.get(name)
    if default is not None:
        return value or default
    if value is None:
        problems.append(
            f"the environment variable {name} is not set; set it, "
            f"or give a default as in ${{{name}:-value}}"
        )
        return ""
    return value
