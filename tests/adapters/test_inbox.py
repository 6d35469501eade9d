"""What the inbox remembers on a real PostgreSQL, and handlers with the modes `after` and `off`."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from outboxd import DeadLetter, Event
from outboxd.adapters.postgres.consumer_database import consumer_database
from outboxd.adapters.receive_counts import ReceiveCounts
from outboxd.core.errors import OutageKind, Unavailable
from outboxd.core.judging import Raised
from outboxd.core.outcomes import DeadReason
from outboxd.core.settings import DatabaseSettings
from tests.adapters.handling_scene import (
    DONE,
    DUPLICATE,
    WRITE,
    AsyncTx,
    Scene,
    Tx,
    a_message,
    a_scene,
)


@pytest.fixture
async def scene(database: str) -> AsyncIterator[Scene]:
    async with a_scene(database) as scene:
        yield scene


def writes(event: Event[Any], tx: Tx) -> None:
    tx.execute(WRITE, (event.id, "written"))


async def writes_async(event: Event[Any], tx: AsyncTx) -> None:
    await tx.execute(WRITE, (event.id, "written"))


async def test_after_marks_only_what_has_succeeded(scene: Scene) -> None:
    sent: list[str] = []

    async def mails(event: Event[Any]) -> None:
        sent.append("mail")
        if len(sent) == 1:
            raise ValueError("smtp")

    event_id = uuid4()
    assert isinstance(await scene.run(mails, event_id, inbox="after"), Raised)
    assert scene.marks == 0
    assert await scene.run(mails, event_id, inbox="after") == DONE
    assert await scene.run(mails, event_id, inbox="after") == DUPLICATE
    assert sent == ["mail"] * 2


async def test_after_does_not_repeat_its_effect_when_the_mark_fails_for_a_moment(
    scene: Scene,
) -> None:
    sent: list[str] = []

    def mails(event: Event[Any]) -> None:
        sent.append("mail")
        scene.rows(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )

    event_id = uuid4()
    assert await scene.run(mails, event_id, inbox="after") == DONE
    assert await scene.run(mails, event_id, inbox="after") == DUPLICATE
    assert sent == ["mail"]


async def test_off_knows_nothing_of_repeats(scene: Scene) -> None:
    event_id = uuid4()
    calls: list[int] = []

    def handler(event: Event[Any]) -> None:
        calls.append(1)

    for _ in range(2):
        assert await scene.run(handler, event_id, inbox="off") == DONE
    assert (calls, scene.marks) == ([1, 1], 0)


async def test_failures_are_counted_by_event_and_handler(scene: Scene) -> None:
    inbox, event_id, message = scene.database.inbox, uuid4(), a_message()
    assert await inbox.failed(event_id, message, "h", "one") == 1
    assert await inbox.failed(event_id, message, "h", "t\0w\ud800o") == 2
    assert await inbox.failed(event_id, message, "other", "x") == 1
    standings = await inbox.standings(event_id, message, ["h", "other", "third"])
    assert {name: s.attempts for name, s in standings.items()} == {"h": 2, "other": 1}


async def test_two_copies_of_an_event_share_one_count(scene: Scene) -> None:
    """Each setting the other's back to one, an event that always fails would fail for ever."""
    inbox, event_id = scene.database.inbox, uuid4()
    counts = [await inbox.failed(event_id, a_message(m), "h", "x") for m in ("m1", "m2") * 2]
    assert counts == [1, 2, 3, 4]


async def test_what_is_dead_stays_dead_for_its_message_and_starts_afresh_for_a_redrive(
    scene: Scene,
) -> None:
    inbox, event_id, message = scene.database.inbox, uuid4(), a_message()
    letter = DeadLetter(DeadReason.TIMEOUT, "timed out: after 5 s")
    for _ in range(3):
        await inbox.failed(event_id, message, "h", "x")
    await inbox.dead(event_id, message, "h", letter)
    standing = (await inbox.standings(event_id, message, ["h"]))["h"]
    assert (standing.attempts, standing.dead) == (3, letter)
    redriven = a_message("m2")
    assert await inbox.standings(event_id, redriven, ["h"]) == {}
    assert await inbox.failed(event_id, redriven, "h", "y") == 1
    assert (await inbox.standings(event_id, redriven, ["h"]))["h"].dead is None


async def test_what_is_done_stays_done_for_a_redrive(scene: Scene) -> None:
    event_id = uuid4()
    await scene.run(writes, event_id)
    standings = await scene.database.inbox.standings(event_id, a_message("m2"), ["h"])
    assert standings["h"].done


async def test_a_ping_asks_for_a_database_that_can_be_written_to(scene: Scene) -> None:
    await scene.database.inbox.ping()
    with psycopg.connect(scene.dsn, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(
            f'ALTER DATABASE "{name}" SET default_transaction_read_only = on'.encode()
        )
    with pytest.raises(Unavailable, match="read-only"):
        await scene.database.inbox.ping()


async def test_a_ping_misses_tables_that_were_never_migrated(bare_database: str) -> None:
    async with consumer_database(DatabaseSettings(url=bare_database), "test", "orders") as database:
        with pytest.raises(Unavailable) as error:
            await database.inbox.ping()
    assert error.value.kind is OutageKind.MISSING


async def test_what_a_handler_has_failed_before_is_told_for_many_events_at_once(
    scene: Scene,
) -> None:
    inbox = scene.database.inbox
    failed, dead, redriven, fresh, of_another = (uuid4() for _ in range(5))
    letter = DeadLetter(DeadReason.REJECTED, "no")
    await inbox.failed(failed, a_message("m1"), "h", "x")
    await inbox.failed(of_another, a_message("m5"), "other", "x")
    for event_id, message_id in ((dead, "m2"), (redriven, "m3")):
        await inbox.failed(event_id, a_message(message_id), "h", "x")
        await inbox.dead(event_id, a_message(message_id), "h", letter)

    tried = await inbox.tried(
        "h",
        [
            (failed, a_message("another copy")),
            (dead, a_message("m2")),
            (redriven, a_message("m3 again")),
            (fresh, a_message("m4")),
            (of_another, a_message("m5")),
        ],
    )

    assert tried == {failed, dead}
    assert await inbox.tried("h", []) == set()


async def test_without_a_database_what_was_received_before_may_have_failed() -> None:
    first, second = uuid4(), uuid4()
    deliveries = [(first, a_message(receive_count=1)), (second, a_message(receive_count=2))]
    assert await ReceiveCounts().tried("h", deliveries) == {second}
