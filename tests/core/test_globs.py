"""Whether two globs can match the same text."""

from fnmatch import fnmatchcase
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outboxd.core.globs import is_literal, may_meet


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        ("order.created", "order.created", True),
        ("order.created", "order.paid", False),
        ("order.*", "order.created", True),
        ("order.*", "payment.*", False),
        ("*.created", "order.*", True),
        ("*.created", "order.*.paid", False),
        ("*", "", True),
        ("order.?", "order.", False),
        ("order.[ab]", "order.b", True),
        ("order.[!ab]", "order.b", False),
        ("order.[]]", "order.]", True),
        ("order.[", "order.[", True),
        ("order.[", "order.a", False),
        ("order.[ab]", "order.?", True),
        ("order.[ab]", "order.[cd]", True),
        ("Order", "order", False),
        ("*" * 255, "*a" * 127, True),
    ],
)
def test_globs_meet_where_a_text_matches_both(one: str, other: str, meet: bool) -> None:
    assert may_meet(one, other) is meet
    assert may_meet(other, one) is meet


GLOBS = st.text("ab*?", max_size=4)
TEXTS = ["".join(letters) for length in range(9) for letters in product("ab", repeat=length)]


@given(GLOBS, GLOBS)
def test_the_answer_is_that_of_trying_every_text(one: str, other: str) -> None:
    tried = any(fnmatchcase(text, one) and fnmatchcase(text, other) for text in TEXTS)

    assert may_meet(one, other) is tried


@given(st.text("ab[]!-*?", max_size=6), st.text("ab[]!-*?", max_size=6), st.text("ab[]!-"))
def test_globs_that_a_text_matches_are_never_told_apart(one: str, other: str, text: str) -> None:
    if fnmatchcase(text, one) and fnmatchcase(text, other):
        assert may_meet(one, other)


@pytest.mark.parametrize(
    ("glob", "literal"), [("a.b", True), ("a.*", False), ("?", False), ("[a]", False)]
)
def test_a_literal_matches_itself_alone(glob: str, literal: bool) -> None:
    assert is_literal(glob) is literal
