"""What a person decides about events is done, once, and remembered."""

import json
import os
import signal
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from outboxd.adapters.postgres import operations
from outboxd.adapters.postgres.asking import asking
from outboxd.cli.main import INTERRUPTED
from outboxd.core.audit import Author
from outboxd.core.exit_codes import ExitCode
from outboxd.core.settings import DatabaseSettings
from tests.cli.conftest import Cli
from tests.cli.outbox_scene import Scene
from tests.relay.scene import FakeDestination, eventually
from tests.relay.scene import Scene as RelayScene

BY = ("--by", "kim", "--reason", "queue is back", "--yes")


@pytest.fixture
def scene(cli: Cli, folder: Path, database: str) -> Scene:
    return Scene(cli, folder, database)


def test_a_dead_event_is_pending_again_with_all_its_attempts(scene: Scene) -> None:
    seq = scene.dead("a", delivered_to="'{sqs:x}'")

    code, out, err = scene.run("requeue", str(seq), *BY)

    assert (code, out, err) == (ExitCode.OK, "requeued: 1 event\n", "")
    assert scene.row(
        seq, "dead_at", "attempts", "next_attempt_at", "last_error", "delivered_to"
    ) == (None, 0, None, "refused", ["sqs:x"])
    assert scene.audit() == [("requeue", "kim", "queue is back", 1)]


def test_a_stopped_event_is_requeued_and_what_waits_behind_it_is_told(scene: Scene) -> None:
    stopped = scene.insert_one("c", attempts="20", next_attempt_at="'infinity'")
    scene.insert("c", "c", "another")

    code, out, _ = scene.run("requeue", "--state", "stopped", *BY)

    assert code == ExitCode.OK
    assert out == "requeued: 1 event; 2 pending events of the same aggregates go out after that\n"
    assert scene.row(stopped, "attempts", "next_attempt_at") == (0, None)


def test_events_are_picked_by_filters(scene: Scene) -> None:
    first, other = scene.dead("a"), scene.dead("b")
    old = scene.dead("b", occurred_at="now() - interval '1 d'")

    told = scene.json("requeue", "--aggregate", "order/b", "--older-than", "2h", *BY)

    assert [event["seq"] for event in told["requeued"]] == [old]
    assert scene.seqs("--state", "dead") == [first, other]
    ((selection,),) = scene.ask("SELECT selection FROM outbox_audit")
    assert selection == {"state": "dead", "aggregate": ["order", "b"], "older_than_seconds": 7200.0}


def test_all_of_a_state_takes_many_batches_of_one_run(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "BATCH", 7)
    for number in range(20):
        scene.dead(f"o-{number}")

    told = scene.json("requeue", "--all", *BY)

    assert len(told["requeued"]) == 20
    assert scene.seqs("--state", "dead") == []
    assert [events for *_, events in scene.audit()] == [7, 7, 6]
    (run,) = scene.json("audit")
    assert (run["run"], run["events"], len(run["event_ids"])) == (told["run"], 20, 20)


def test_a_dry_run_changes_nothing(scene: Scene) -> None:
    seq = scene.dead("a")

    for command in ("requeue", "discard"):
        code, out, _ = scene.run(command, "--all", "--dry-run")
        assert code == ExitCode.OK
        assert out.splitlines()[0].startswith(f"{seq}  ")
        assert "would be " in out
    assert scene.seqs("--state", "dead") == [seq]
    assert scene.audit() == []


def test_nothing_is_changed_without_a_yes(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.dead("a")
    monkeypatch.setattr("sys.stdin", None)

    for command in (["requeue", "--all"], ["discard", "--all"], ["prune", "--older-than", "0s"]):
        code, _, err = scene.run(*command)
        assert code == ExitCode.UNEXPECTED
        assert "give --yes" in err
    assert len(scene.seqs("--state", "dead")) == 1


@pytest.mark.parametrize("argv", [[], ["1", "--all"], ["1", "--type", "*"]])
def test_what_is_meant_has_to_be_said(scene: Scene, argv: list[str]) -> None:
    code, _, err = scene.run("requeue", *argv, "--yes")

    assert code == ExitCode.USAGE
    assert "name events by id or seq, or give filters" in err


def test_events_that_cannot_be_changed_are_named_and_the_others_are_changed(scene: Scene) -> None:
    dead, (ready,) = scene.dead("a"), scene.insert("b")
    published = scene.insert_one("c", published_at="now()")
    nobody = uuid4()

    code, out, err = scene.run(
        "requeue", str(dead), str(ready), str(published), str(nobody), "99", *BY
    )

    assert (code, out) == (ExitCode.UNEXPECTED, "requeued: 1 event\n")
    assert f"{nobody}: no event in the outbox has it" in err
    assert "99: no event in the outbox has it" in err
    assert f"event {ready} " in err
    assert "it is pending already" in err
    assert "it is published already" in err


def test_a_discarded_event_stays_and_can_be_taken_back(scene: Scene) -> None:
    seq = scene.dead("a")

    code, out, _ = scene.run("discard", str(seq), *BY)

    assert (code, out) == (ExitCode.OK, "discarded: 1 event\n")
    assert scene.seqs("--state", "discarded") == [seq]
    assert scene.seqs("--state", "dead") == []
    assert scene.row(seq, "published_at", "last_error") == (
        None,
        "discarded by kim: queue is back; before: refused",
    )
    assert scene.json("list")["totals"]["dead"] == 0
    assert scene.run("discard", str(seq), *BY).code == ExitCode.UNEXPECTED
    assert scene.run("requeue", str(seq), *BY).code == ExitCode.OK
    assert scene.seqs() == [seq]
    assert [command for command, *_ in scene.audit()] == ["discard", "requeue"]


def test_a_pending_event_is_discarded_and_its_aggregate_goes_on(scene: Scene) -> None:
    stopped = scene.insert_one("c", attempts="20", next_attempt_at="'infinity'")
    behind, *_ = scene.insert("c", "other")

    code, out, _ = scene.run("discard", str(stopped), *BY)

    assert code == ExitCode.OK
    assert "1 pending event of the same aggregates need not wait for that" in out
    assert scene.seqs("--state", "blocked") == []
    assert behind in scene.seqs()


def test_discarding_a_whole_aggregate_leaves_nobody_behind(scene: Scene) -> None:
    scene.insert("c", "c", "c", "d")

    told = scene.json("discard", "--state", "pending", "--aggregate", "order/c", *BY)

    assert (len(told["discarded"]), told["pending_behind"]) == (3, 0)
    assert len(scene.seqs()) == 1


def test_a_row_that_a_relay_is_marking_is_left_and_told(scene: Scene) -> None:
    busy, free = scene.dead("a"), scene.dead("b")
    with psycopg.connect(scene.url) as relay:
        relay.execute("SELECT 1 FROM outboxd.outbox_events WHERE seq = %s FOR UPDATE", [busy])
        code, out, _ = scene.run("discard", "--all", *BY)

    assert code == ExitCode.UNEXPECTED
    assert "discarded: 1 event\n" in out
    assert "left: 1 event" in out
    assert scene.seqs("--state", "dead") == [busy]
    assert scene.seqs("--state", "discarded") == [free]


def test_an_event_that_is_published_meanwhile_stays_so(scene: Scene) -> None:
    """What was picked is looked at again in the statement that changes it."""
    seq = scene.dead("a", published_at="now()")
    with asking(DatabaseSettings(url=scene.url), "test") as database:
        doing = operations.Operations(database, Author("kim", None, {}))
        assert doing.requeue([seq]) == []
        assert doing.discard([seq]) == []
    assert scene.audit() == []


def test_published_and_discarded_events_are_pruned_and_no_others(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "PRUNE_BATCH", 3)
    long_ago = "now() - interval '3 d'"
    gone = [scene.insert_one("a", published_at=long_ago) for _ in range(8)]
    gone.append(scene.insert_one("a", dead_at=long_ago, next_attempt_at="'infinity'"))
    left = [
        scene.insert_one("a", published_at="now()"),
        scene.insert_one("a", dead_at="now()", next_attempt_at="'infinity'"),
        scene.insert_one("a", dead_at=long_ago, occurred_at=long_ago),
        scene.insert_one("a", occurred_at=long_ago),
        scene.insert_one("a", occurred_at=long_ago, next_attempt_at="'infinity'"),
    ]

    assert scene.json("prune", "--older-than", "2d", "--dry-run")["pruned"] == len(gone)
    assert scene.audit() == []
    code, out, _ = scene.run("prune", "--older-than", "2d", *BY)

    assert (code, out) == (ExitCode.OK, "pruned: 9 events\n")
    assert scene.ask("SELECT array_agg(seq ORDER BY seq) FROM outbox_events") == [(left,)]
    assert {entry[:2] for entry in scene.audit()} == {("prune", "kim")}
    assert sum(events for *_, events in scene.audit()) == 9
    assert scene.json("prune", "--older-than", "2d", *BY)["pruned"] == 0


def test_a_prune_that_is_interrupted_can_be_repeated(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "PRUNE_BATCH", 2)
    scene.ask(
        "INSERT INTO outbox_events"
        " (event_type, aggregate_type, aggregate_id, payload, published_at)"
        " SELECT 't', 'order', 'a', '1', now() - interval '1 d' FROM generate_series(1, 9)"
    )
    steps = operations.Operations.prune

    def interrupted_once(self: operations.Operations, *given: float, dry: bool) -> object:
        step = steps(self, *given, dry=dry)  # type: ignore[arg-type]
        if step.last_seq == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return step

    monkeypatch.setattr(operations.Operations, "prune", interrupted_once)
    code, out, _ = scene.run("prune", "--older-than", "0s", *BY)
    assert (code, out) == (INTERRUPTED, "pruned: 2 events\n")
    assert scene.run("prune", "--older-than", "0s", *BY).out == "pruned: 7 events\n"


def test_the_audit_lists_runs_and_cannot_be_changed(scene: Scene) -> None:
    scene.dead("a")
    scene.run("requeue", "--all", *BY)
    scene.dead("b")
    scene.run("discard", "--all", "--by", "lee", "--yes")

    code, out, _ = scene.run("audit")
    newest, oldest = json.loads(scene.run("audit", "--json").out)

    assert code == ExitCode.OK
    assert [newest["command"], oldest["command"]] == ["discard", "requeue"]
    assert (newest["operator"], newest["reason"]) == ("lee", None)
    assert (oldest["operator"], oldest["reason"]) == ("kim", "queue is back")
    assert oldest["role"] == scene.ask("SELECT current_user::text")[0][0]
    assert "by        kim" in out
    assert "chosen    state dead" in out
    for statement in ("UPDATE outbox_audit SET events = 2", "DELETE FROM outbox_audit",
                      "TRUNCATE outbox_audit"):  # fmt: skip
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="append-only"):
            scene.ask(statement)


def test_whoever_names_nobody_is_named_by_the_machine(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "night-shift")
    scene.dead("a")

    scene.run("requeue", "--all", "--yes")

    assert scene.audit() == [("requeue", "night-shift", None, 1)]


def test_nothing_to_do_is_no_failure(scene: Scene) -> None:
    assert scene.run("requeue", "--all", *BY) == (ExitCode.OK, "requeued: no events\n", "")
    assert scene.json("discard", "--all", *BY)["discarded"] == []


async def test_a_running_relay_takes_up_what_was_requeued_and_lets_go_of_what_was_discarded(
    scene: Scene,
) -> None:
    relay_scene, queue = RelayScene(scene.url), FakeDestination()
    dead = scene.dead("a")
    stopped = scene.insert_one("b", attempts="20", next_attempt_at="'infinity'")
    behind, *_ = scene.insert("b")
    with asking(DatabaseSettings(url=scene.url), "test") as database:
        doing = operations.Operations(database, Author("kim", None, {}))
        doing.discard([stopped])
        async with relay_scene.relay(queue):
            await eventually(lambda: queue.seqs == [behind])
            doing.requeue([dead])
            await eventually(lambda: sorted(queue.seqs) == sorted([dead, behind]))
            await eventually(lambda: relay_scene.pending() == [])

    assert scene.seqs("--state", "discarded") == [stopped]
    assert sorted(scene.seqs("--state", "published")) == sorted([dead, behind])
    assert scene.row(dead, "last_error", "attempts") == (None, 0)
