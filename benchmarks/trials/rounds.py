"""Rounds of different benchmarks as one."""

from collections.abc import Sequence
from itertools import zip_longest

from benchmarks.figures import Round


def beside(some: Sequence[Round], others: Sequence[Round]) -> list[Round]:
    """The first of both, the second of both, and so on; one may have fewer than the other."""
    nothing: Round = {}
    return [one | other for one, other in zip_longest(some, others, fillvalue=nothing)]
