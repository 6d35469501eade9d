"""Event patterns and filter policies, as EventBridge compares; SNS differs in numbers only."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outboxd.localaws.matching import values
from outboxd.localaws.matching.operators import PatternError
from outboxd.localaws.matching.pattern import compiled


def matches(pattern: Any, content: Any, *, numbers_as_written: bool = True) -> bool:
    """Both as JSON text, or as what becomes of it."""
    texts = [each if isinstance(each, str) else json.dumps(each) for each in (pattern, content)]
    asked, given_ = map(values.decoded, texts)
    return compiled(asked, numbers_as_written=numbers_as_written).matches(given_)


@pytest.mark.parametrize(
    ("alternatives", "value", "expected"),
    [
        (["a"], "a", True),
        (["a", "b"], "b", True),
        (["a"], "A", False),
        (["a"], ["x", "a"], True),
        (["a"], [["x"], ["a"]], True),
        (["a"], {"a": 1}, False),
        ([""], "", True),
        ([1], 1, True),
        ([1], "1", False),
        (["1"], 1, False),
        ([True], True, True),
        ([True], 1, False),
        ([1], True, False),
        ([0], False, False),
        ([None], None, True),
        ([None], "", False),
        ([{"prefix": "ab"}], "abc", True),
        ([{"prefix": "ab"}], "ab", True),
        ([{"prefix": "ab"}], "Abc", False),
        ([{"prefix": "ab"}], 1, False),
        ([{"prefix": ""}], "x", True),
        ([{"prefix": {"equals-ignore-case": "AB"}}], "abc", True),
        ([{"suffix": ".png"}], "a.png", True),
        ([{"suffix": ".png"}], "a.jpg", False),
        ([{"suffix": {"equals-ignore-case": ".PNG"}}], "a.png", True),
        ([{"equals-ignore-case": "Alice"}], "aLICE", True),
        ([{"equals-ignore-case": "Alice"}], "Alic", False),
        ([{"anything-but": "a"}], "b", True),
        ([{"anything-but": "a"}], "a", False),
        ([{"anything-but": ["a", "b"]}], "b", False),
        ([{"anything-but": ["a", "b"]}], ["a", "c"], True),
        ([{"anything-but": ["a", "b"]}], ["a", "b"], False),
        ([{"anything-but": 5}], 5, False),
        ([{"anything-but": [5, 6]}], 7, True),
        ([{"anything-but": [5, 6]}], "5", True),
        ([{"anything-but": {"prefix": "a"}}], "ba", True),
        ([{"anything-but": {"prefix": ["a", "b"]}}], "ba", False),
        ([{"anything-but": {"suffix": "a"}}], "ba", False),
        ([{"anything-but": {"equals-ignore-case": ["A"]}}], "a", False),
        ([{"anything-but": {"wildcard": "*/lib/*"}}], "/lib/x", False),
        ([{"numeric": ["=", 5]}], 5.0, True),
        ([{"numeric": [">", 0, "<", 5]}], 5, False),
        ([{"numeric": [">=", 0, "<=", 5]}], 5, True),
        ([{"numeric": [">", 0]}], -1, False),
        ([{"numeric": [">", 0]}], "1", False),
        ([{"numeric": [">", 0]}], True, False),
        ([{"wildcard": "a*c"}], "abbc", True),
        ([{"wildcard": "a*c"}], "ac", True),
        ([{"wildcard": "a*c"}], "acd", False),
        ([{"wildcard": "a*\nc"}], "a.\nc", True),
        ([{"wildcard": "a\\*c"}], "a*c", True),
        ([{"wildcard": "a\\*c"}], "abc", False),
        ([{"wildcard": "a\\\\*"}], "a\\x", True),
        ([{"wildcard": "a.c"}], "abc", False),
        ([{"cidr": "10.0.0.0/24"}], "10.0.0.255", True),
        ([{"cidr": "10.0.0.0/24"}], "10.0.1.0", False),
        ([{"cidr": "10.0.0.0/24"}], "ten", False),
        ([{"cidr": "2001:db8::/32"}], "2001:db8::1", True),
        ([{"exists": True}], None, True),
        ([{"exists": True}], "", True),
        ([{"exists": True}], {"a": 1}, False),
        ([{"exists": True}], [], False),
        ([{"exists": False}], "x", False),
        ([{"exists": False}], {"a": 1}, True),
        (["x", {"exists": False}], "x", True),
        (["a", {"prefix": "b"}, {"numeric": ["<", 3]}], 2, True),
    ],
)
def test_a_field_matches_if_one_alternative_does(
    alternatives: list[Any], value: Any, expected: bool
) -> None:
    assert matches({"field": alternatives}, {"field": value}) is expected


@pytest.mark.parametrize(
    ("pattern", "content", "expected"),
    [
        ({"a": ["x"], "b": ["y"]}, {"a": "x", "b": "y", "c": "z"}, True),
        ({"a": ["x"], "b": ["y"]}, {"a": "x"}, False),
        ({"a": {"b": {"c": ["x"]}}}, {"a": {"b": {"c": "x"}}}, True),
        ({"a": {"b": ["x"]}}, {"a": "x"}, False),
        ({"a": {"b": [{"exists": False}]}}, {}, True),
        ({"a": {"b": [{"exists": False}]}}, {"a": "x"}, True),
        ({"a": {"b": [{"exists": False}]}}, {"a": []}, True),
        ({"a": {"b": [{"exists": False}]}}, {"a": {"b": None}}, False),
        ({"a": [{"anything-but": "x"}]}, {}, False),
        # One element has to have both.
        ({"a": {"b": ["x"], "c": ["y"]}}, {"a": [{"b": "x"}, {"c": "y"}]}, False),
        ({"a": {"b": ["x"], "c": ["y"]}}, {"a": [{"b": "z"}, {"b": "x", "c": "y"}]}, True),
        ({"$or": [{"a": ["x"]}, {"b": ["y"]}]}, {"b": "y"}, True),
        ({"$or": [{"a": ["x"]}, {"b": ["y"]}]}, {"b": "x"}, False),
        ({"c": ["z"], "$or": [{"a": ["x"]}, {"b": ["y"]}]}, {"b": "y"}, False),
        ({"c": {"$or": [{"a": ["x"]}, {"b": ["y"]}]}}, {"c": {"a": "x"}}, True),
        ({"$or": [{"a": ["x"]}, {"$or": [{"b": ["y"]}, {"b": ["z"]}]}]}, {"b": "z"}, True),
    ],
)
def test_all_fields_must_match(pattern: Any, content: Any, expected: bool) -> None:
    assert matches(pattern, content) is expected


def test_eventbridge_compares_numbers_as_they_are_written_and_sns_by_value() -> None:
    for written, equal in [("300", True), ("300.0", False), ("3e2", False)]:
        assert matches('{"n": [300]}', f'{{"n": {written}}}') is equal
        assert matches('{"n": [300]}', f'{{"n": {written}}}', numbers_as_written=False)


@pytest.mark.parametrize(
    "pattern",
    [
        [],
        {},
        "x",
        {"a": "x"},
        {"a": 1},
        {"a": []},
        {"a": {}},
        {"a": [["x"]]},
        {"a": [{}]},
        {"a": [{"prefix": "x", "suffix": "y"}]},
        {"a": [{"prefix": 1}]},
        {"a": [{"suffix": {"prefix": "x"}}]},
        {"a": [{"near": "x"}]},
        {"a": [{"exists": "yes"}]},
        {"a": [{"equals-ignore-case": 1}]},
        {"a": [{"wildcard": "a**b"}]},
        {"a": [{"wildcard": "a\\b"}]},
        {"a": [{"wildcard": "a\\"}]},
        {"a": [{"wildcard": 1}]},
        {"a": [{"cidr": "ten"}]},
        {"a": [{"numeric": []}]},
        {"a": [{"numeric": [">"]}]},
        {"a": [{"numeric": ["~", 1]}]},
        {"a": [{"numeric": [">", "1"]}]},
        {"a": [{"numeric": ["<", 1, ">", 0]}]},
        {"a": [{"numeric": [">", 2, "<", 1]}]},
        {"a": [{"anything-but": []}]},
        {"a": [{"anything-but": ["x", 1]}]},
        {"a": [{"anything-but": True}]},
        {"a": [{"anything-but": {"numeric": ["=", 1]}}]},
        {"a": [{"anything-but": {"prefix": []}}]},
        {"a": [{"anything-but": {"prefix": ""}}]},
        {"a": [{"anything-but": {"prefix": "x", "suffix": "y"}}]},
        {"$or": [{"a": ["x"]}]},
        {"$or": [{"a": ["x"]}, {}]},
    ],
)
def test_what_is_no_pattern_is_refused(pattern: Any) -> None:
    with pytest.raises(PatternError):
        compiled(values.decoded(json.dumps(pattern)), numbers_as_written=True)


SCALARS = st.none() | st.booleans() | st.text(max_size=3) | st.integers(-5, 5)
CONTENT = st.dictionaries(
    st.sampled_from("abc"), st.recursive(SCALARS, lambda each: st.lists(each, max_size=3))
)


@given(CONTENT)
def test_content_matches_the_pattern_made_of_it(content: dict[str, Any]) -> None:
    def pattern_of(value: Any) -> list[Any]:
        leaves = list(_leaves(value))
        return leaves or [{"exists": False}]

    pattern = {name: pattern_of(value) for name, value in content.items()}
    if pattern:
        assert matches(pattern, content)


@given(CONTENT, st.sampled_from("abc"))
def test_either_a_field_exists_or_it_does_not(content: dict[str, Any], name: str) -> None:
    there = matches({name: [{"exists": True}]}, content)

    assert there is not matches({name: [{"exists": False}]}, content)
    assert matches({name: [{"exists": True}, {"exists": False}]}, content)


@given(st.recursive(SCALARS | st.floats(allow_nan=False, allow_infinity=False), st.lists))
def test_json_is_written_as_it_was_read(value: Any) -> None:
    assert json.loads(values.encoded(values.decoded(json.dumps({"é": value})))) == {"é": value}


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", "{", "", "[" * 100_000])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        values.decoded(text)


def _leaves(value: Any) -> Any:
    if isinstance(value, list):
        for each in value:
            yield from _leaves(each)
    else:
        yield value
