"""Whatever a file holds, the answer is settings or problems, never a crash."""

import datetime
from collections.abc import Iterator
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from outboxd.core.errors import SettingsError
from outboxd.core.settings import Section, Settings
from outboxd.core.settings_decoding import decode_settings
from outboxd.core.settings_rules import broken_rules


def known_keys(kind: type[Section]) -> Iterator[str]:
    yield from (field.name for field in msgspec.structs.fields(kind))


KEYS = sorted({key for kind in Section.__subclasses__() for key in known_keys(kind)} | {"url_file"})

scalars = (
    st.integers()
    | st.floats()
    | st.booleans()
    | st.sampled_from(["sqs:q", "q", "m:f", "json", "off", "", "${A}", "${B:-7}", "${", "$${A}"])
    | st.text(max_size=5)
    | st.dates()
    | st.times()
    | st.datetimes(timezones=st.just(datetime.UTC))
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*KEYS, "q"]) | st.text(max_size=3), inner, max_size=6)
    ),
    max_leaves=25,
)
trees = st.dictionaries(st.sampled_from(KEYS), values, max_size=8)


def read_secret(path: str) -> str:
    if path == "q":
        return "postgresql://h/d"
    raise SettingsError(["does not exist"])


@given(trees)
@settings(max_examples=400)
def test_every_tree_becomes_settings_or_problems(tree: dict[str, Any]) -> None:
    outcome = decoded_or_problems(tree)

    if isinstance(outcome, Settings):
        assert_carried_unchanged(outcome)
        problems = broken_rules(outcome)
    else:
        assert outcome
        problems = list(outcome)
    assert all("\n" not in problem for problem in problems)


def decoded_or_problems(tree: dict[str, Any]) -> Settings | tuple[str, ...]:
    try:
        return decode_settings(tree, {"A": "1"}, read_secret)
    except SettingsError as error:
        return error.problems


def assert_carried_unchanged(decoded: Settings) -> None:
    """Children decode what they are told, and msgspec then refuses what breaks a type's rule."""
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(decoded), type=Settings) == decoded


def sensible(kind: type[Section]) -> st.SearchStrategy[dict[str, Any]]:
    """Tables of one kind whose keys are right and whose values may be."""
    keys = list(known_keys(kind))
    numbers = st.integers(-1, 100) | st.floats(-1, 1e9, allow_nan=False)
    return st.dictionaries(st.sampled_from(keys), scalars | numbers, max_size=len(keys))


@given(
    st.sampled_from(Section.__subclasses__()).flatmap(lambda k: st.tuples(st.just(k), sensible(k)))
)
@settings(max_examples=400)
def test_an_accepted_table_has_the_types_that_it_promises(
    pair: tuple[type[Section], dict[str, Any]],
) -> None:
    kind, table = pair

    outcome = decoded_or_problems(_as_a_file(kind, table))

    if isinstance(outcome, Settings):
        assert_carried_unchanged(outcome)


def _as_a_file(kind: type[Section], table: dict[str, Any]) -> dict[str, Any]:
    match kind.__name__:
        case "QueueSettings":
            return {"queues": {"q": table}}
        case "HandlerSettings":
            return {"queues": {"q": {"handlers": [table]}}}
        case "RouteSettings":
            return {"relay": {"routes": [table]}}
        case "Settings":
            return table
        case name:
            return {name.removesuffix("Settings").lower(): table}
