"""Suspects, with a database and without: what both promise, and what only PostgreSQL can."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import closing
from uuid import UUID, uuid4

import anyio
import psycopg
import pytest

from outboxd.adapters.known_suspects import REMEMBERED, KnownSuspects
from outboxd.adapters.postgres.inbox_upkeep import PostgresInboxUpkeep
from outboxd.adapters.postgres.pools import AsyncConnections, Database
from outboxd.adapters.postgres.sessions import Sessions
from outboxd.adapters.postgres.suspects import PostgresSuspects
from outboxd.channels.protocol import Suspect
from outboxd.core.errors import OutageKind, Unavailable
from outboxd.core.messages import ReceivedMessage
from outboxd.core.settings import DatabaseSettings
from outboxd.ports.suspects import Suspects, Suspicion
from tests.relay.scene import eventually

Process = Callable[..., Suspects]
"""Makes the suspects of a process: of the queue `orders`, or of the one that is named."""


@pytest.fixture
async def process(database: str) -> AsyncIterator[Process]:
    where = Database(DatabaseSettings(url=database), "test")
    connections = AsyncConnections(where)
    yield lambda queue="orders": PostgresSuspects(where, connections, queue)
    await connections.close()


@pytest.fixture(params=["postgres", "memory"])
def suspects(request: pytest.FixtureRequest) -> Suspects:
    if request.param == "memory":
        return KnownSuspects(limit=5)
    process: Process = request.getfixturevalue("process")
    return process()


def messages(*message_ids: str, receive_count: int = 2) -> list[ReceivedMessage]:
    return [
        ReceivedMessage(
            message_id=message_id,
            receipt_handle="r",
            receive_count=receive_count,
            sent_at=0.0,
            body="",
        )
        for message_id in message_ids
    ]


def died(
    *message_ids: str, alone: bool = False, reason: str = "signal", death: UUID | None = None
) -> Sequence[Suspect]:
    """What one process left; each call is another death unless it is told."""
    death = death or uuid4()
    return [Suspect("orders", message_id, alone, reason, death) for message_id in message_ids]


async def test_nothing_stands_against_most_messages(suspects: Suspects) -> None:
    await suspects.record([])

    assert await suspects.look_up([]) == {}
    assert await suspects.look_up(messages("m-1")) == {}
    await suspects.cleared([])
    await suspects.cleared(["m-1"])


async def test_suspects_are_known_until_they_are_cleared(suspects: Suspects) -> None:
    await suspects.record(died("m-1", "m-2", "m-3", reason="heartbeat"))
    await suspects.cleared(["m-2", "m-9"])

    assert await suspects.look_up(messages("m-0", "m-1", "m-2", "m-3")) == {
        "m-1": Suspicion(0, "heartbeat"),
        "m-3": Suspicion(0, "heartbeat"),
    }


async def test_a_crash_alone_is_told_from_one_in_company(suspects: Suspects) -> None:
    await suspects.record(died("m-1", "m-2", reason="heartbeat"))
    await suspects.record(died("m-1", alone=True))

    assert await suspects.look_up(messages("m-1", "m-2")) == {
        "m-1": Suspicion(1, "signal"),
        "m-2": Suspicion(0, "heartbeat"),
    }


async def test_a_death_counts_once_however_often_it_is_recorded(suspects: Suspects) -> None:
    first, second = (died("m-1", "m-2", alone=True, reason=r) for r in ("signal", "stuck"))
    await suspects.record(first)
    await suspects.record(first)  # its answer was lost
    assert await suspects.look_up(messages("m-1")) == {"m-1": Suspicion(1, "signal")}

    await suspects.record(second)
    await suspects.record(second)

    assert await suspects.look_up(messages("m-1", "m-2")) == dict.fromkeys(
        ("m-1", "m-2"), Suspicion(2, "stuck")
    )


async def test_a_process_that_held_two_copies_of_a_message_has_died_once(
    suspects: Suspects,
) -> None:
    await suspects.record(died("m-1", "m-1", alone=True))

    assert await suspects.look_up(messages("m-1")) == {"m-1": Suspicion(1, "signal")}


async def test_a_death_that_a_successor_recorded_before_it_died_is_not_counted_again(
    process: Process,
) -> None:
    death = died("m-1", alone=True)
    await process().record(death)
    await process().record(death)

    assert await process().look_up(messages("m-1")) == {"m-1": Suspicion(1, "signal")}


async def test_suspects_of_before_deaths_were_kept_go_on_counting(
    database: str, process: Process
) -> None:
    with closing(psycopg.connect(database, autocommit=True)) as connection:
        connection.execute(
            "INSERT INTO outboxd.suspects (queue, message_id, crashes_alone, reason)"
            " VALUES ('orders', 'm-1', 1, 'crash')"
        )

    await process().record(died("m-1", alone=True))

    assert await process().look_up(messages("m-1")) == {"m-1": Suspicion(2, "signal")}


async def test_one_report_may_name_a_message_twice(suspects: Suspects) -> None:
    await suspects.record([*died("m-1", alone=True), *died("m-1", reason="crash")])

    assert await suspects.look_up(messages("m-1")) == {"m-1": Suspicion(1, "crash")}


async def test_crashes_alone_add_up_across_processes_with_a_database(process: Process) -> None:
    await process().record(died("m-1", alone=True))
    await process().record(died("m-1", alone=True))
    await process().record(died("m-1"))

    assert await process().look_up(messages("m-1")) == {"m-1": Suspicion(2, "signal")}


async def test_every_queue_has_its_own(process: Process) -> None:
    await process("orders").record(died("m-1"))

    assert await process("mails").look_up(messages("m-1")) == {}
    await process("mails").cleared(["m-1"])
    assert await process("orders").look_up(messages("m-1")) == {"m-1": Suspicion(0, "signal")}


async def test_processes_that_report_the_same_messages_do_not_block_each_other(
    process: Process,
) -> None:
    ids = [f"m-{number}" for number in range(300)]

    async with anyio.create_task_group() as tasks:
        for order in (ids, ids[::-1]) * 4:
            tasks.start_soon(process().record, died(*order, alone=True))

    found = await process().look_up(messages(*ids))
    assert found == dict.fromkeys(ids, Suspicion(8, "signal"))


@pytest.mark.parametrize("call", ["record", "look_up", "cleared"])
async def test_an_outage_is_told_as_one(bare_database: str, call: str) -> None:
    where = Database(DatabaseSettings(url=bare_database), "test")
    connections = AsyncConnections(where)
    suspects = PostgresSuspects(where, connections, "orders")
    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "record": lambda: suspects.record(died("m-1")),
        "look_up": lambda: suspects.look_up(messages("m-1")),
        "cleared": lambda: suspects.cleared(["m-1"]),
    }

    with pytest.raises(Unavailable) as outage:
        await calls[call]()

    assert outage.value.kind is OutageKind.MISSING
    await connections.close()


async def test_without_a_database_the_receive_count_bounds_a_suspect() -> None:
    suspects = KnownSuspects(limit=5)
    await suspects.record(died("m-1"))
    await suspects.record(died("m-2", alone=True))

    assert await suspects.look_up(messages("m-1", "m-2", receive_count=5)) == {
        "m-1": Suspicion(0, "signal"),
        "m-2": Suspicion(1, "signal"),
    }
    assert await suspects.look_up(messages("m-1", "m-2", "m-3", receive_count=6)) == {
        "m-1": Suspicion(2, "signal"),
        "m-2": Suspicion(2, "signal"),
    }


async def test_without_a_database_the_oldest_suspects_are_forgotten() -> None:
    suspects = KnownSuspects(limit=5)
    await suspects.record(died(*(f"m-{number}" for number in range(REMEMBERED + 1))))

    assert await suspects.look_up(messages("m-0")) == {}
    assert len(await suspects.look_up(messages("m-1", f"m-{REMEMBERED}"))) == 2


async def test_old_suspects_are_purged_step_by_step(database: str, process: Process) -> None:
    ids = [f"m-{number}" for number in range(5)]
    await process().record(died(*ids, "young"))
    with closing(psycopg.connect(database, autocommit=True)) as connection:
        connection.execute(
            "UPDATE outboxd.suspects SET last_crash_at = clock_timestamp() - interval '2 h'"
            " WHERE message_id <> 'young'"
        )
    await process().record(died("m-4"))
    sessions = Sessions(DatabaseSettings(url=database), "test")
    upkeep = PostgresInboxUpkeep(sessions, "outboxd")

    steps = [await upkeep.purge_suspects(3600.0, 3) for _ in range(3)]

    assert steps == [3, 1, 0]
    assert set(await process().look_up(messages(*ids, "young"))) == {"m-4", "young"}
    await sessions.close()


async def test_a_suspect_that_crashes_again_while_it_is_purged_stays(
    database: str, process: Process
) -> None:
    await process().record(died("m-1"))
    sessions = Sessions(DatabaseSettings(url=database), "test")
    upkeep = PostgresInboxUpkeep(sessions, "outboxd")
    deleted: list[int] = []

    async def purge() -> None:
        deleted.append(await upkeep.purge_suspects(3600.0, 10))

    with closing(psycopg.connect(database)) as connection:
        connection.execute(
            "UPDATE outboxd.suspects SET last_crash_at = clock_timestamp() - interval '2 h'"
        )
        connection.commit()
        connection.execute("UPDATE outboxd.suspects SET last_crash_at = clock_timestamp()")
        with closing(psycopg.connect(database, autocommit=True)) as watcher:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(purge)
                await eventually(
                    lambda: bool(
                        watcher.execute(
                            "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                            " AND datname = current_database()"
                        ).fetchall()
                    )
                )
                connection.commit()

    assert deleted == [0]
    assert await process().look_up(messages("m-1")) == {"m-1": Suspicion(0, "signal")}
    await sessions.close()
