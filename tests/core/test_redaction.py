"""Nothing secret is shown, in no way of showing."""

import pytest

from outboxd.core.redaction import redacted, without_secrets
from outboxd.core.settings import (
    AwsSettings,
    DatabaseSettings,
    HandlerSettings,
    QueueSettings,
    Settings,
)

SETTINGS = Settings(
    database=DatabaseSettings(
        url="postgresql://u:hunter2@h/d", direct_url="postgresql://u:hunter2@h:6543/d"
    ),
    aws=AwsSettings(endpoint_url="http://me:hunter2@proxy:4566"),
    queues={
        "q": QueueSettings(
            handlers=(
                HandlerSettings(
                    event="*", handler="m:f", name="n", options={"key": "hunter2", "n": 1}
                ),
            )
        )
    },
)


def test_the_printed_settings_hold_no_secret_and_every_setting() -> None:
    shown = redacted(SETTINGS)

    assert "hunter2" not in str(shown)
    assert shown["database"] == {
        "url": "***",
        "direct_url": "***",
        "schema": "outboxd",
        "connect_timeout_seconds": 5.0,
    }
    assert shown["aws"]["endpoint_url"] == "http://***@proxy:4566"
    assert shown["queues"]["q"]["handlers"][0]["options"] == {"key": "***", "n": "***"}
    assert shown["relay"] is None


def test_the_repr_holds_no_secret() -> None:
    database, queue = SETTINGS.database, SETTINGS.queues["q"]

    assert "hunter2" not in f"{database!r} {queue!r} {database} {[database]}"
    assert "schema='outboxd'" in repr(database)


@pytest.mark.parametrize(
    ("conninfo", "complaint"),
    [
        ("postgres//u:hunter2@h/d", 'missing "=" after "postgres//u:hunter2@h/d" in connection'),
        ("postgresql://u:hunter2@h/d", 'cannot parse "hunter2"'),
        ("postgresql://u:hunter%32@h/d", "failed: hunter2 is wrong"),
        ("postgresql://u:hunter2@oops@h/d", "host hunter2@oops is unknown"),
        ("postgresql://h/d?password=hunter2", "hunter2"),
        ("host=h password=hunter2 port=x", "hunter2"),
        ("host=h password = 'hunter2 too'", "'hunter2 too' hunter2 too"),
    ],
)
def test_an_error_of_libpq_is_cleansed(conninfo: str, complaint: str) -> None:
    assert "hunter2" not in without_secrets(complaint, conninfo)


def test_an_error_without_a_secret_stays_as_it_is() -> None:
    text = 'connection to server at "h", port 5432 failed: Connection refused'

    assert without_secrets(text, "postgresql://u@h/d") == text
    assert without_secrets(text, "postgresql://h/d") == text
