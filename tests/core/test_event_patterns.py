"""Globs in the words of AWS match what they match here."""

import json
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outboxd.core.event_patterns import Untranslatable, conditions
from outboxd.localaws.matching import values
from outboxd.localaws.matching.pattern import compiled


@pytest.mark.parametrize(
    ("globs", "expected"),
    [
        (["order.placed"], ["order.placed"]),
        (["order.*", "payment.*"], [{"prefix": "order."}, {"prefix": "payment."}]),
        (["*.placed"], [{"suffix": ".placed"}]),
        (["order.*.done"], [{"wildcard": "order.*.done"}]),
        (["a**b"], [{"wildcard": "a*b"}]),
        (["a\\*b"], [{"wildcard": "a\\\\*b"}]),
        (["order.placed", "*"], None),
        (["**"], None),
        ([], None),
    ],
)
def test_each_glob_has_the_simplest_condition(globs: list[str], expected: object) -> None:
    assert conditions(globs, wildcards=True) == expected


@pytest.mark.parametrize("glob", ["order.?", "order.[ab]"])
def test_what_aws_has_no_words_for_is_refused(glob: str) -> None:
    with pytest.raises(Untranslatable, match="AWS matches by"):
        conditions([glob], wildcards=True)


@pytest.mark.parametrize("glob", ["order.*.done", "*order*"])
def test_sns_knows_no_star_in_the_middle(glob: str) -> None:
    with pytest.raises(Untranslatable, match="at the beginning or at the end"):
        conditions([glob], wildcards=False)


texts = st.text("ab.*\\", max_size=6)


@given(st.text("ab.*\\", min_size=1, max_size=6), texts)
def test_a_condition_matches_what_its_glob_matches(glob: str, text: str) -> None:
    translated = conditions([glob], wildcards=True)
    if translated is None:
        assert fnmatchcase(text, glob)
        return
    pattern = compiled(values.decoded(json.dumps({"type": translated})), numbers_as_written=True)

    assert pattern.matches({"type": text}) == fnmatchcase(text, glob)
