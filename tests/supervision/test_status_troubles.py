"""The last errors: bounded, one line for what repeats, and without secrets."""

import logging
from collections.abc import Iterator

import pytest

from outboxd.channels.protocol import Sample
from outboxd.core.redaction import redactor, secrets_of
from outboxd.core.settings import DatabaseSettings, HandlerSettings, QueueSettings, Settings
from outboxd.supervision.status import names
from outboxd.supervision.status.counted_troubles import counted_troubles
from outboxd.supervision.status.log_tap import LogTap
from outboxd.supervision.status.readings import Readings
from outboxd.supervision.status.troubles import KEPT, LONGEST_TEXT, Troubles

SETTINGS = Settings(
    database=DatabaseSettings(url="postgresql://app:hunter2%21@db/shop"),
    queues={
        "orders": QueueSettings(
            handlers=(
                HandlerSettings(
                    event="*",
                    handler="shop:ship",
                    name="ship",
                    options={"api_key": "sk-live-0815", "country": "de"},
                ),
            )
        )
    },
)


def test_what_repeats_is_one_line_with_a_count_and_the_newest_is_first() -> None:
    troubles = Troubles()
    troubles.add(1, "error", "orders", "dead letter", count=2)
    troubles.add(2, "warning", "relay", "late")
    troubles.add(3, "error", "orders", "dead letter")

    assert [(each.text, each.count, each.seconds_ago) for each in troubles.newest(5)] == [
        ("dead letter", 3, 2),
        ("late", 1, 3),
    ]


def test_neither_lines_nor_their_number_grow() -> None:
    troubles = Troubles()
    for number in range(10 * KEPT):
        troubles.add(number, "error", "orders", f"{number} {'x' * 10_000}\n\x1b[2J")

    newest = troubles.newest(0)
    assert len(newest) == KEPT
    assert all(len(each.text) <= LONGEST_TEXT for each in newest)
    assert newest[0].text.startswith(f"{10 * KEPT - 1} ")


@pytest.fixture
def troubles() -> Troubles:
    return Troubles()


@pytest.fixture
def logger(troubles: Troubles) -> Iterator[logging.Logger]:
    logger = logging.getLogger("outboxd.test_status")
    tap = LogTap(troubles, redactor(secrets_of(SETTINGS)))
    logger.addHandler(tap)
    yield logger
    logger.removeHandler(tap)


def test_warnings_of_the_log_are_kept_with_their_facts(
    logger: logging.Logger, troubles: Troubles
) -> None:
    logger.setLevel(logging.INFO)
    logger.info("child changed state", extra={"child": "relay"})
    logger.warning("child will be started again", extra={"child": "relay", "in_seconds": 0.51234})
    try:
        raise OSError("no such file")
    except OSError:
        logger.exception("bad")

    assert [(each.source, each.level, each.text) for each in troubles.newest(0)] == [
        ("supervisor", "error", "bad OSError: no such file"),
        ("relay", "warning", "child will be started again in_seconds=0.512"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "cannot reach postgresql://app:hunter2%21@db/shop",
        'password authentication failed: "hunter2!"',
        "login with hunter2%21 refused",
        "https://bob:pw-of-bob@proxy/ does not answer",
        "password='other one' is wrong",
        "the key sk-live-0815 is not known in dead letters",
    ],
)
def test_no_secret_is_kept(logger: logging.Logger, troubles: Troubles, text: str) -> None:
    logger.error("giving up", extra={"why": text})

    (kept,) = troubles.newest(0)
    assert "***" in kept.text
    for secret in ("hunter2", "pw-of-bob", "other one", "sk-live"):
        assert secret not in kept.text
    assert kept.text.startswith("giving up why=")


def _readings(*samples: tuple[str, dict[str, str], float]) -> Readings:
    return Readings([Sample(*each) for each in samples], names.NAMES)


def test_what_children_count_becomes_lines() -> None:
    of_ship = {"queue": "orders", "handler": "ship"}
    before = _readings((names.LETTERS, {**of_ship, "reason": "max_attempts"}, 1.0))
    now = _readings(
        (names.LETTERS, {**of_ship, "reason": "max_attempts"}, 3.0),
        (names.LETTERS, {**of_ship, "reason": "crash"}, 0.0),
        (names.RETRIES, {**of_ship, "error_type": "timeout"}, 1.0),
        (names.RETRIES, {**of_ship, "error_type": "requested"}, 5.0),
        (names.RECEIVES, {"queue": "orders", "result": "error"}, 4.0),
        (names.RECEIVES, {"queue": "orders", "result": "empty"}, 4.0),
        (names.OUTAGES, {"outbox": "default", "destination": "sqs:a", "kind": "timeout"}, 1.0),
        (names.DATABASE_FAILURES, {"outbox": "default", "doing": "read"}, 2.0),
    )

    assert [
        (each.source, each.text, each.count, each.look) for each in counted_troubles(now, before)
    ] == [
        ("orders", "dead letter of ship: max attempts", 2, "outboxd dlq list orders"),
        ("orders", "ship is tried again: timeout", 1, ""),
        ("relay", "sqs:a is not reached: timeout", 1, ""),
        ("relay", "the database failed a statement (read)", 2, ""),
        ("orders", "receive failed", 4, ""),
    ]
