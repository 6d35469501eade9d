"""Nothing secret is shown, in no way of showing."""

import time

import pytest

from outboxd.core.redaction import (
    redacted,
    redacted_within,
    redactor,
    secrets_in_environment,
    secrets_of,
    without_secrets,
)
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


@pytest.mark.parametrize(
    "text",
    [
        "cannot reach postgresql://u:hunter2@h/d",
        'password authentication failed for "hunter2"',
        "proxy http://me:hunter2@proxy:4566 does not answer",
        "https://bob:hunter2@ter@elsewhere/ does not answer",
        "password='hunter2 too' is wrong",
        'login failed: {"password": "hunter2"}',
        "GET /?X-Amz-Signature=hunter2&X-Amz-Security-Token=hunter2 failed",
        "refused: Authorization: Bearer hunter2hunter2",
        "the key of hunter2-of-aws is not valid",
        "failed: {'db_password': 'hunter2', 'user': 'u'}",
        "pwd=hunter2",
        "called with --smtp-password hunter2",
        "api_key=hunter2",
        "apikey: hunter2",
        "Authorization: Basic hunter2==",
    ],
)
def test_a_text_of_the_log_is_cleansed(text: str) -> None:
    environment = {"AWS_SECRET_ACCESS_KEY": "hunter2-of-aws"}
    redact = redactor([*secrets_of(SETTINGS), *secrets_in_environment(environment)])

    assert "hunter2" not in redact(text)
    assert "***" in redact(text)


def test_hosts_among_the_options_of_handlers_can_be_read_in_the_log() -> None:
    handler = HandlerSettings(
        event="*",
        handler="m:f",
        name="n",
        options={"smtp_host": "127.0.0.1", "api_key": "127-and-more"},
    )
    redact = redactor(secrets_of(handler))

    assert redact("listening at http://127.0.0.1:9464") == "listening at http://127.0.0.1:9464"
    assert redact("127-and-more") == "***"


def test_a_text_of_the_log_stays_as_it_is_where_nothing_is_secret() -> None:
    """A short password hides where it is a word; the path of a secret's file is no secret."""
    environment = {
        "PGPASSWORD": "app",
        "TOKEN_FILE": "/run/secrets/token",
        "HOME": "/home/somebody",
    }
    database = DatabaseSettings(url="postgresql://u:app@h/d")
    redact = redactor([*secrets_of(database), *secrets_in_environment(environment)])
    text = "application lost /run/secrets/token in /home/somebody; 3 tokens, see https://h/a@b"

    assert redact(text) == text
    assert redact("is it app?") == "is it ***?"
    assert redactor([])(text) == text


@pytest.mark.parametrize(
    "part", ["token", "_token", "password ", "://a", "bearer ", "password='", "--token"]
)
def test_no_text_takes_long_to_be_cleansed(part: str) -> None:
    """Of a handler's error, say: while it is searched nothing else runs in the process."""
    text = part * 200_000
    began = time.thread_time()
    shown = redacted_within(text, 8192, redactor(["hunter2-of-aws"]))

    assert len(shown) < 8300
    assert time.thread_time() - began < 1.0  # a quadratic search took minutes


@pytest.mark.parametrize("at", [*range(4050, 4110), *range(29_900, 29_960), 8, 31_000])
def test_no_half_of_a_secret_is_left_where_a_text_is_cut(at: int) -> None:
    text = "a" * at + " hunter2-of-aws " + "z" * (34_000 - at)
    shown = redacted_within(text, 8192, redactor(["hunter2-of-aws"]))

    assert not any(part in shown for part in ("hunter", "of-aws", "nter2", "-aws"))


def test_a_text_that_is_not_long_is_kept_whole() -> None:
    redact = redactor([])
    assert redacted_within("a" * 8192, 8192, redact) == "a" * 8192
    cut = redacted_within("a" * 9000 + "z", 8192, redact)
    assert (cut[:2], cut[-2:]) == ("aa", "az")
    assert "809 characters left out" in cut
