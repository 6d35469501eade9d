"""What two globs have in common, without a text at hand to try them on."""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

STAR = "*"
ANY = "?"


def may_meet(one: str, other: str) -> bool:
    """Whether some text matches both globs, as fnmatchcase understands them.

    Two sets such as `[ab]` and `[cd]` are taken to meet: the answer is for advice, which had better
    be left out than be wrong.
    """
    first, second = _parts(one), _parts(other)
    seen: set[tuple[int, int]] = set()
    waiting = [(0, 0)]
    while waiting:
        place = waiting.pop()
        if place == (len(first), len(second)):
            return True
        if place not in seen:
            seen.add(place)
            waiting.extend(_next(first, second, *place))
    return False


def is_literal(glob: str) -> bool:
    """Whether the glob can only match itself."""
    return not any(special in glob for special in "*?[")


def _next(first: Sequence[str], second: Sequence[str], i: int, j: int) -> Iterator[tuple[int, int]]:
    """Where both globs may stand after none or one character more of a common text."""
    one = first[i] if i < len(first) else None
    other = second[j] if j < len(second) else None
    if one == STAR:
        yield i + 1, j
        if other is not None:
            yield i, j + 1
    elif other == STAR:
        yield i, j + 1
        if one is not None:
            yield i + 1, j
    elif one is not None and other is not None and _share(one, other):
        yield i + 1, j + 1


def _share(one: str, other: str) -> bool:
    """Whether one character matches both parts, neither of which is a star."""
    if len(one) == 1 and one != ANY:
        return fnmatchcase(one, other)
    if len(other) == 1 and other != ANY:
        return fnmatchcase(other, one)
    return True


def _parts(glob: str) -> list[str]:
    """A glob as stars, question marks, sets and single characters."""
    parts: list[str] = []
    at = 0
    while at < len(glob):
        end = _end_of_set(glob, at) if glob[at] == "[" else at + 1
        parts.append(glob[at:end])
        at = end
    return parts


def _end_of_set(glob: str, start: int) -> int:
    """Behind the set that starts here; a bracket that is never closed stands for itself."""
    first = start + 2 if glob.startswith("!", start + 1) else start + 1
    closing = glob.find("]", first + 1)  # one that comes first belongs to the set
    return start + 1 if closing < 0 else closing + 1
