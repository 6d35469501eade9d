"""Globs for PostgreSQL match what they match in Python."""

from contextlib import closing
from fnmatch import fnmatchcase

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outboxd.core.outbox_filters import Globs, glob_regex, route_globs
from outboxd.core.settings import RelaySettings, RouteSettings, Settings
from outboxd.demo.postgres import EmbeddedPostgres

SIGNS = "ab*?[]!-^.\\$({'\n"


@pytest.mark.parametrize(
    ("glob", "texts", "others"),
    [
        ("order.*", ["order.placed", "order."], ["order", "orders.x", "an order.x"]),
        ("a?c", ["abc", "a\nc"], ["ac", "abbc"]),
        ("[ab]c", ["ac", "bc"], ["cc", "[ab]c"]),
        ("[!ab]c", ["cc"], ["ac"]),
        ("[a-c]", ["b"], ["d", "-"]),
        ("[]]", ["]"], ["[]]"]),
        ("[z-a]", [], ["z", "a", "-"]),
        ("a[", ["a["], ["a"]),
        ("1+1=(2)^\\", ["1+1=(2)^\\"], ["11=2"]),
        ("größe.?", ["größe.x"], ["grösse.x"]),
    ],
)
def test_a_glob_matches_in_the_database_what_it_matches_in_the_relay(
    postgres_server: EmbeddedPostgres, database: str, glob: str, texts: list[str], others: list[str]
) -> None:
    with closing(psycopg.connect(database)) as connection:
        for text in [*texts, *others]:
            query = "SELECT %s::text ~ %s"
            ((matches,),) = connection.execute(query, [text, glob_regex(glob)]).fetchall()
            assert matches is fnmatchcase(text, glob) is (text in texts), text


def test_no_glob_is_understood_differently(database: str) -> None:
    with closing(psycopg.connect(database)) as connection:

        @settings(max_examples=500)
        @given(st.text(SIGNS, max_size=6), st.lists(st.text(SIGNS, max_size=4), max_size=5))
        def compare(glob: str, texts: list[str]) -> None:
            rows = connection.execute(
                "SELECT text ~ %s FROM unnest(%s::text[]) WITH ORDINALITY AS t (text, n)"
                " ORDER BY n",
                [glob_regex(glob), texts],
            ).fetchall()
            assert [matches for (matches,) in rows] == [fnmatchcase(t, glob) for t in texts]

        compare()


@pytest.mark.parametrize(("on_unrouted", "hold"), [("hold", True), ("dead", False)])
def test_only_a_relay_that_holds_events_without_a_route_has_held_ones(
    on_unrouted: str, hold: bool
) -> None:
    relay = RelaySettings(
        routes=(
            RouteSettings(events="order.*", to=("sqs:x",)),
            RouteSettings(events="mail.*", to=("sqs:x",), ordering="none"),
        ),
        on_unrouted="hold" if on_unrouted == "hold" else "dead",
    )

    globs = route_globs(Settings(relay=relay))

    assert (len(globs.events), len(globs.aggregates), globs.hold) == (2, 2, hold)
    assert globs.ordered == [True, False]
    assert route_globs(Settings()) == Globs()
