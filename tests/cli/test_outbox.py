"""What is in the outbox is shown by state, and cheaply."""

import json
from pathlib import Path
from uuid import uuid4

import pytest

from outboxd.adapters.postgres import outbox_rows
from outboxd.adapters.postgres.sessions import SERVER_LIMITS
from outboxd.core.exit_codes import ExitCode
from tests.cli.conftest import Cli
from tests.cli.outbox_scene import CONFIGURATION, Scene


@pytest.fixture
def scene(cli: Cli, folder: Path, database: str) -> Scene:
    return Scene(cli, folder, database)


def test_every_event_is_listed_under_the_state_that_it_is_in(scene: Scene) -> None:
    ready, after = scene.insert("a", "a")
    failing = scene.insert_one("b", attempts="1", next_attempt_at="now() + interval '1 h'")
    behind_failing, *_ = scene.insert("b")
    stopped = scene.insert_one("c", attempts="20", next_attempt_at="'infinity'")
    behind_stopped, *_ = scene.insert("c")
    held = scene.insert_one("d", event_type="invoice.sent")
    behind_held, *_ = scene.insert("d")
    dead = scene.dead("e")
    after_dead, *_ = scene.insert("e")
    discarded = scene.insert_one("f", dead_at="now()", next_attempt_at="'infinity'")
    published = scene.insert_one("g", published_at="now()")

    assert scene.seqs() == [
        ready, after, failing, behind_failing, stopped, behind_stopped, held, behind_held,
        after_dead,
    ]  # fmt: skip
    assert scene.seqs("--state", "failing") == [failing]
    assert scene.seqs("--state", "stopped") == [stopped]
    assert scene.seqs("--state", "held") == [held]
    assert scene.seqs("--state", "blocked") == [behind_failing, behind_stopped, behind_held]
    assert scene.seqs("--state", "dead") == [dead]
    assert scene.seqs("--state", "discarded") == [discarded]
    assert scene.seqs("--state", "published") == [published]


def test_a_listing_says_for_each_event_what_it_waits_for(scene: Scene) -> None:
    failing = scene.insert_one(
        "b", attempts="3", next_attempt_at="now() + interval '90 s'", last_error="E'lost\\nline'"
    )
    (behind,) = scene.insert("b")

    code, out, err = scene.run("list")

    assert (code, err) == (ExitCode.OK, "")
    assert "failing: tried again in 1 min" in out
    assert "error     lost line" in out
    assert f"blocked: behind event {failing} of its aggregate, which failed" in out
    assert f"{behind}  " in out
    assert "\n2 pending events; in all: 2 events pending, the oldest for " in out
    assert out.endswith("; no events dead\n")


WITHOUT_ORDER = CONFIGURATION.replace(
    "[relay]\n",
    """[relay]
[[relay.routes]]
events = "order.mailed"
to = ["sqs:orders"]
ordering = "none"
""",
)


def test_an_event_without_an_order_is_never_behind_another_nor_another_behind_it(
    cli: Cli, folder: Path, database: str
) -> None:
    """The first route that matches counts: `order.*` would keep an order."""
    scene = Scene(cli, folder, database, WITHOUT_ORDER)
    later = "now() + interval '1 h'"
    failing = scene.insert_one("a", event_type="order.mailed", next_attempt_at=later)
    (free,) = scene.insert("a")
    (after,) = scene.insert("a")
    stopped = scene.insert_one("b", next_attempt_at="'infinity'")
    (mail,) = scene.insert("b", event_type="order.mailed")
    (blocked,) = scene.insert("b")

    assert scene.seqs("--state", "blocked") == [blocked]
    assert scene.seqs("--state", "failing") == [failing]
    assert scene.seqs() == [failing, free, after, stopped, mail, blocked]
    listed = {event["seq"]: event for event in scene.json("list")["events"]}
    assert {seq: event["behind_seq"] for seq, event in listed.items()} == {
        failing: None,
        free: None,
        after: free,
        stopped: None,
        mail: None,
        blocked: stopped,
    }
    for seq, event in listed.items():
        (shown,) = scene.json("show", str(seq))
        assert (shown["state"], shown["behind_seq"]) == (event["state"], event["behind_seq"])
    assert "aggregate waits" not in scene.run("show", str(failing)).out


def test_a_late_success_of_a_dead_event_is_published(scene: Scene) -> None:
    late = scene.dead("a", published_at="now()")

    assert scene.seqs("--state", "dead") == []
    assert scene.seqs("--state", "published") == [late]


def test_without_a_relay_that_holds_nothing_is_held(cli: Cli, folder: Path, database: str) -> None:
    consumer = """
    [database]
    url = "{url}"
    [queues.orders]
    [[queues.orders.handlers]]
    event = "*"
    handler = "shop:ship"
    name = "ship"
    """
    scene = Scene(cli, folder, database, consumer)
    unrouted = scene.insert_one("d", event_type="invoice.sent")

    assert scene.seqs("--state", "held") == []
    assert scene.seqs() == [unrouted]


def test_filters_narrow_every_state(scene: Scene) -> None:
    for column in ("next_attempt_at = NULL", "dead_at = now()", "published_at = now()"):
        state = {"n": "pending", "d": "dead", "p": "published"}[column[0]]
        first, second = scene.insert("x/1", "y")
        (other,) = scene.insert("y", event_type="invoice.sent")
        old = scene.insert_one("y", occurred_at="now() - interval '3 h'")
        scene.ask(f"UPDATE outbox_events SET {column} WHERE seq >= %s", first)

        assert sorted(scene.seqs("--state", state)) == [first, second, other, old]
        assert scene.seqs("--state", state, "--aggregate", "order/x/1") == [first]
        assert scene.seqs("--state", state, "--aggregate", "order:nobody") == []
        assert scene.seqs("--state", state, "--type", "invoice.*") == [other]
        assert scene.seqs("--state", state, "--older-than", "2h") == [old]
        assert scene.seqs("--state", state, "--older-than", "2h", "--type", "i*") == []
        scene.ask("DELETE FROM outbox_events")


def test_the_oldest_come_first_and_published_ones_last_first(scene: Scene) -> None:
    seqs = scene.insert(*(f"o-{n}" for n in range(200)))
    assert scene.seqs("--limit", "7") == seqs[:7]
    scene.ask("UPDATE outbox_events SET dead_at = now()")
    assert scene.seqs("--limit", "7", "--state", "dead") == seqs[:7]
    scene.ask("UPDATE outbox_events SET published_at = now()")
    assert scene.seqs("--limit", "7", "--state", "published") == seqs[:-8:-1]
    assert scene.seqs("--limit", "7", "--state", "dead") == []


@pytest.mark.parametrize("state", ["dead", "published"])
def test_a_listing_goes_on_until_it_has_found_enough(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    monkeypatch.setattr(outbox_rows, "LOOK", 5)
    column = {"dead": "dead_at", "published": "published_at"}[state]
    seqs = scene.insert(*(f"o-{n}" for n in range(33)))
    scene.ask(f"UPDATE outbox_events SET {column} = now()")
    wanted = [seqs[1], seqs[2], seqs[17], seqs[32]]
    scene.ask("UPDATE outbox_events SET event_type = 'order.late' WHERE seq = ANY(%s)", wanted)

    assert sorted(scene.seqs("--state", state, "--type", "*.late")) == wanted
    assert sorted(scene.seqs("--state", state)) == seqs
    assert len(scene.seqs("--state", state, "--limit", "8")) == 8


def test_a_listing_of_too_much_says_that_it_did_not_look_at_all(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox_rows, "LOOK", 3)
    scene.insert(*["one"] * 9)

    code, _, err = scene.run("list", "--type", "*.late")

    assert code == ExitCode.OK
    assert "only the oldest events of each of the 64 shares" in err
    assert scene.run("list", "--type", "*.late", "--aggregate", "order/none").err == ""


@pytest.mark.parametrize("state", ["blocked", "published"])
def test_a_listing_that_takes_long_ends_and_says_how_far_it_looked(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    monkeypatch.setattr(outbox_rows, "LOOK", 3)
    scene.insert(*["one"] * 9)

    code, out, err = scene.run("list", "--state", state, "--scan-seconds", "0.000001", "--json")

    assert code == ExitCode.OK
    assert json.loads(out)["looked_short"] is True
    assert "looked through for 1e-06 s, not to its end" in err


def test_the_oldest_are_found_in_whatever_bucket_they_are(scene: Scene) -> None:
    """Of a later bucket only what is older than the last one so far is looked at."""
    seqs = scene.insert(*[f"{number}" for number in range(200)])
    scene.ask("UPDATE outbox_events SET next_attempt_at = 'infinity' WHERE seq %% %s = 0", 3)
    stopped = [seq for seq in seqs if seq % 3 == 0]

    assert scene.seqs("--limit", "7") == seqs[:7]
    assert scene.seqs("--state", "stopped", "--limit", "7") == stopped[:7]
    assert scene.seqs("--state", "stopped") == stopped


def test_a_listing_has_no_payload_but_everything_else_as_json(scene: Scene) -> None:
    seq = scene.insert_one(
        "a", next_attempt_at="'infinity'", delivered_to="'{sqs:x}'", attempts="2"
    )

    ran = scene.run("list", "--json")
    (event,) = json.loads(ran.out)["events"]

    assert "secret" not in ran.out
    assert event == {
        "seq": seq,
        "id": scene.ids([seq])[0],
        "event_type": "order.placed",
        "aggregate_type": "order",
        "aggregate_id": "a",
        "state": "stopped",
        "behind_seq": None,
        "occurred_at": event["occurred_at"],
        "age_seconds": event["age_seconds"],
        "published_at": None,
        "attempts": 2,
        "next_attempt_at": "infinity",
        "last_error": None,
        "dead_at": None,
        "delivered_to": ["sqs:x"],
    }
    assert json.loads(ran.out)["totals"]["pending"] == 1


def test_times_without_end_are_bearable(scene: Scene) -> None:
    seq = scene.insert_one("a", occurred_at="'-infinity'")

    assert scene.seqs("--older-than", "1d") == [seq]
    assert scene.run("list").code == ExitCode.OK
    assert scene.run("show", str(seq)).code == ExitCode.OK


def test_an_event_is_shown_by_its_id_and_by_its_seq(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox_rows, "IDS_PER_STATEMENT", 3)
    seqs = scene.insert(*["a"] * 10)
    for seq, identity in zip(seqs, scene.ids(seqs), strict=True):
        by_id, by_seq = scene.run("show", identity), scene.run("show", str(seq))
        assert by_id.code == ExitCode.OK
        head = f"{seq}  {identity}  order.placed"
        assert by_id.out.splitlines()[0] == head
        assert by_seq.out.splitlines()[0] == head
    last = scene.run("show", str(seqs[-1])).out
    assert f"after event {seqs[0]} of its aggregate" in last
    assert "goes to   sqs:orders" in last


def test_a_table_with_an_index_on_the_id_is_asked_by_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    (seq,) = scene.insert("a")
    (identity,) = scene.ids([seq])
    scene.ask("CREATE INDEX ON outbox_events (id)")
    monkeypatch.setattr(outbox_rows, "BY_ID", "not asked")

    assert scene.run("show", identity).out.startswith(f"{seq}  {identity}")


def test_a_payload_is_shown_only_when_asked_for(scene: Scene) -> None:
    (seq,) = scene.insert("a")

    assert "secret" not in scene.run("show", str(seq)).out
    assert '{"secret": 1}' in scene.run("show", str(seq), "--payload").out
    assert scene.json("show", str(seq), "--payload")[0]["payload"] == {"secret": 1}


def test_an_event_that_is_not_there_is_1(scene: Scene) -> None:
    for event in (str(uuid4()), "42"):
        code, out, err = scene.run("show", event)
        assert (code, out) == (ExitCode.UNEXPECTED, "")
        assert event in err


@pytest.mark.parametrize(
    "argv",
    [
        ["show", "x"],
        ["list", "--older-than", "7"],
        ["list", "--older-than", "-1d"],
        ["list", "--older-than", "40000d"],
        ["list", "--aggregate", "order"],
        ["list", "--state", "lost"],
        ["list", "--limit", "0"],
        ["prune"],
        [],
    ],
)
def test_a_wrong_argument_is_a_usage_error(cli: Cli, argv: list[str]) -> None:
    assert cli("outbox", *argv).code == ExitCode.USAGE


def test_a_database_without_tables_says_what_to_run(
    cli: Cli, folder: Path, bare_database: str
) -> None:
    code, out, err = Scene(cli, folder, bare_database).run("list")

    assert (code, out) == (ExitCode.UNEXPECTED, "")
    assert "outboxd migrate" in err


def test_a_database_that_is_too_busy_says_that_it_can_be_repeated(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.insert("a")
    monkeypatch.setattr(outbox_rows, "BY_SEQ", "SELECT pg_sleep(9) WHERE %(seqs)s IS NOT NULL")
    monkeypatch.setitem(SERVER_LIMITS, "statement_timeout", "50ms")

    code, _, err = scene.run("show", "1")

    assert code == ExitCode.UNEXPECTED
    assert "the database is too busy for this now" in err
    assert "[database] url" not in err
