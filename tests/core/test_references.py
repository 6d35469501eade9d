"""References to the environment are replaced once, and told when they cannot be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outboxd.core.references import expand

ENVIRON = {"HOST": "db", "EMPTY": "", "TRICKY": "${HOST}", "PRICE": "$5"}


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("${HOST}", "db"),
        ("postgresql://${HOST}/${HOST}", "postgresql://db/db"),
        ("${EMPTY}", ""),
        ("${MISSING:-fallback}", "fallback"),
        ("${EMPTY:-fallback}", "fallback"),
        ("${HOST:-fallback}", "db"),
        ("${MISSING:-}", ""),
        ("${MISSING:-a:-b}", "a:-b"),
        ("${TRICKY}", "${HOST}"),
        ("$${HOST}", "${HOST}"),
        ("$$${HOST}", "$${HOST}"),
        ("costs $5 or $HOST", "costs $5 or $HOST"),
        ("${PRICE}", "$5"),
        ("}", "}"),
    ],
)
def test_a_reference_stands_for_the_environments_value(text: str, expanded: str) -> None:
    result = expand(text, ENVIRON)

    assert result.text == expanded
    assert result.problems == ()


def test_a_missing_variable_is_named_with_its_remedy() -> None:
    assert expand("${ABSENT}", ENVIRON).problems == (
        "the environment variable ABSENT is not set; set it, "
        "or give a default as in ${ABSENT:-value}",
    )


def test_every_problem_of_one_text_is_told() -> None:
    assert len(expand("${ONE} ${TWO} ${", {}).problems) == 3


@pytest.mark.parametrize("text", ["${", "${1A}", "${A-b}", "${}", "${HOST", "${HO ST}"])
def test_a_malformed_reference_is_no_literal(text: str) -> None:
    (problem,) = expand(text, ENVIRON).problems

    assert "begins no reference" in problem


def test_only_references_make_a_text_referenced() -> None:
    assert expand("${HOST}", ENVIRON).referenced
    assert not expand("$${HOST} $x", ENVIRON).referenced


@given(st.text())
def test_escaping_every_reference_gives_the_text_back(text: str) -> None:
    # A text that ends one `$` before another's `${` cannot be escaped apart, so they are left out.
    plain = text.replace("$", "")

    assert expand(plain.replace("{", "$${"), {}).text == plain.replace("{", "${")


@given(st.text(), st.text())
def test_a_value_is_taken_as_it_is(value: str, around: str) -> None:
    around = around.replace("$", "")

    assert expand(f"{around}${{V}}", {"V": value}).text == around + value
