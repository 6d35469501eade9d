"""What makes an actor refuse its settings, before it has connected anywhere."""

from pathlib import Path
from uuid import uuid4

import pytest

from outboxd.adapters.configuration import load_settings
from outboxd.assembly import assemble
from outboxd.channels.mailbox import open_mailbox
from outboxd.channels.protocol import Address, Welcome
from outboxd.core.children import Slot
from outboxd.core.errors import SettingsError

CONFIGURATION = """
[database]
url = "postgresql://shop:{password}@localhost/shop"
direct_url = "postgresql://shop:{direct_password}@localhost/shop"

[[relay.routes]]
events = "*"
to = ["sqs:work"]

[queues.work]
[[queues.work.handlers]]
event = "*"
handler = "os:getpid"
name = "nothing"
"""

GOOD, BAD = "hunter2", "hun%zzter2"


@pytest.mark.parametrize(
    ("child", "password", "direct_password", "key"),
    [
        ("relay", BAD, GOOD, "url"),
        ("relay", GOOD, BAD, "direct_url"),
        ("consumer:work/1", BAD, GOOD, "url"),
    ],
)
async def test_a_url_that_libpq_cannot_parse_is_refused_without_being_quoted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    child: str,
    password: str,
    direct_password: str,
    key: str,
) -> None:
    """It used to be a traceback, which ended with a part of the password."""
    monkeypatch.setattr("outboxd.adapters.handlers.load_handlers", lambda *_: ())
    path = tmp_path / "outboxd.toml"
    path.write_text(CONFIGURATION.format(password=password, direct_password=direct_password))
    welcome = Welcome(load_settings(path, {}), Address(child, 1), uuid4())
    mailbox, counterpart = open_mailbox()

    with pytest.raises(SettingsError) as refused:
        async with assemble(Slot.parse(child), welcome, mailbox):
            pass

    assert str(refused.value).startswith(f"[database] {key}: libpq cannot parse it; ")
    assert "ter2" not in str(refused.value)
    counterpart.close()
    mailbox.close()
