"""What a person gets wrong in a configuration is told in one clear line, before anything starts."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from outboxd.cli import check as command
from outboxd.core.exit_codes import ExitCode
from outboxd.resources import project_directory
from tests.cli.conftest import Cli
from tests.shop.production import PRODUCTION

GOOD = """
[database]
url = "postgresql://me:hunter2@localhost/shop"

[relay]
[[relay.routes]]
events = "order.*"
to = ["sqs:order-events"]

[queues.order-events]
concurrency = 4

[[queues.order-events.handlers]]
event = "order.created"
handler = "shop.shipping:ship"
name = "shipping.ship"

[[queues.order-events.handlers]]
event = "order.created"
handler = "shop.shipping:bill"
name = "billing.bill"
"""

SHIPPING = """
from outboxd import Event

def ship(event: Event[dict]) -> None:
    pass

def bill(event: Event[dict]) -> None:
    pass
"""


@pytest.fixture
def shop(folder: Path) -> Path:
    """A working directory with a good configuration and its handlers."""
    (folder / "shop").mkdir()
    (folder / "shop/__init__.py").touch()
    (folder / "shop/shipping.py").write_text(SHIPPING)
    (folder / "outboxd.toml").write_text(GOOD)
    return folder


def check(folder: Path, *argv: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own, since a check imports the handlers into it."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "outboxd", "check", *argv],
        cwd=folder,
        env={"PATH": os.environ["PATH"], **environ},
        capture_output=True,
        text=True,
        timeout=30,
    )


def test_a_good_configuration_is_summed_up(shop: Path) -> None:
    result = check(shop)

    assert (result.returncode, result.stderr) == (ExitCode.OK, "")
    assert result.stdout == "configuration ok: 1 route, 1 queue, 2 handlers\n"


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (
            "concurrency = 4",
            "concurency = 4",
            'outboxd: outboxd.toml: [queues.order-events] concurency: unknown key; did you mean "'
            'concurrency"?\n',
        ),
        (
            "concurrency = 4",
            "wait_seconds = 20",
            "outboxd: outboxd.toml: [queues.order-events] wait_seconds: waiting 20 s + 5 s to "
            "settle exceed the 20 s that a stop has ([supervisor] grace_seconds - "
            "escalation_seconds), so a stop would end in a kill; lower it to at most 15, or raise "
            "grace_seconds to at least 30\n",
        ),
        (
            "sqs:order-events",
            "sqs:order-event",
            'outboxd: outboxd.toml: [[relay.routes]] #1 to: "sqs:order-event": there is no '
            '[queues.order-event]; did you mean "sqs:order-events"?\n',
        ),
        (
            "billing.bill",
            "shipping.ship",
            "outboxd: outboxd.toml: [[queues.order-events.handlers]] #2 (shipping.ship): the name "
            '"shipping.ship" is taken by [[queues.order-events.handlers]] #1 (shipping.ship); one '
            "would take the other's inbox marks for its own and never run\n",
        ),
        (
            "hunter2@localhost",
            "hun/ter2@localhost",
            "outboxd: outboxd.toml: [database] url: has an @ or a / in its user name or password; "
            "write %40 or %2F for it (the url is not shown)\n",
        ),
        (
            "hunter2@localhost",
            "hun%zzter2@localhost",
            "outboxd: outboxd.toml: [database] url: libpq cannot parse it; percent-encode "
            "/ ? # @ : % in a user name or a password (the url is not shown)\n",
        ),
    ],
)
def test_a_mistake_is_one_line(shop: Path, old: str, new: str, line: str) -> None:
    (shop / "outboxd.toml").write_text(GOOD.replace(old, new))

    result = check(shop)

    assert (result.returncode, result.stdout) == (ExitCode.INVALID_CONFIGURATION, "")
    assert result.stderr == line


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("shop.shipping:ship", "shop.shiping:ship"),
        ("shop.shipping:ship", "shop.shipping:shipp"),
    ],
)
def test_a_handler_that_cannot_be_imported_is_one_line(shop: Path, old: str, new: str) -> None:
    (shop / "outboxd.toml").write_text(GOOD.replace(old, new))

    result = check(shop)

    assert (result.returncode, result.stdout) == (ExitCode.INVALID_CONFIGURATION, "")
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("outboxd: outboxd.toml: ")
    assert new in result.stderr


def test_a_handlers_module_that_fails_is_a_line_that_says_where(shop: Path) -> None:
    (shop / "shop/shipping.py").write_text("import shop.colours")
    (shop / "shop/colours.py").write_text("\nraise RuntimeError('no\\ncolours\\n\\ttoday')")

    result = check(shop)

    assert result.returncode == ExitCode.INVALID_CONFIGURATION
    assert result.stderr.splitlines() == [
        f"outboxd: outboxd.toml: [queues.order-events] handler {name}: shop.shipping:{function} "
        "could not be imported: RuntimeError: no colours today "
        f"({shop / 'shop/colours.py'}:2)"
        for name, function in (("shipping.ship", "ship"), ("billing.bill", "bill"))
    ]


def test_an_import_that_takes_long_is_told_once(
    shop: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The module here is imported for as long as nothing is told."""
    monkeypatch.setattr(command, "PATIENCE_SECONDS", 0.01)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (shop / "slow_shop.py").write_text(f"{UNTIL_TOLD}{SHIPPING}")
    (shop / "outboxd.toml").write_text(GOOD.replace("shop.shipping", "slow_shop"))

    code, out, err = cli("check")

    monkeypatch.delitem(sys.modules, "slow_shop")
    assert (code, err) == (ExitCode.OK, "outboxd: still importing slow_shop ...\n")
    assert out.startswith("configuration ok: ")


UNTIL_TOLD = """
import sys, time
while "still importing" not in sys.stderr.getvalue():
    time.sleep(0.001)
"""


def test_a_handler_of_what_nobody_here_publishes_is_noted(shop: Path) -> None:
    (shop / "outboxd.toml").write_text(GOOD.replace('events = "order.*"', 'events = "payment.*"'))

    result = check(shop)

    assert (result.returncode, result.stderr) == (ExitCode.OK, "")
    assert result.stdout.splitlines() == [
        "configuration ok: 1 route, 1 queue, 2 handlers",
        "note: [[queues.order-events.handlers]] #1 (shipping.ship): no route here publishes "
        '"order.created" to this queue; fine if something else does',
        "note: [[queues.order-events.handlers]] #2 (billing.bill): no route here publishes "
        '"order.created" to this queue; fine if something else does',
    ]


def test_the_effective_settings_are_shown_without_secrets(shop: Path) -> None:
    result = check(shop, "--show")

    shown = json.loads(result.stdout)
    assert result.returncode == ExitCode.OK
    assert "hunter2" not in result.stdout
    assert shown["queues"]["order-events"]["concurrency"] == 4
    assert shown["queues"]["order-events"]["visibility_seconds"] == 30
    assert shown["import_path"] == [str(shop)]


@pytest.mark.parametrize("name", ["outboxd.toml", "shop.toml"])
def test_the_configurations_that_come_along_are_good(name: str) -> None:
    result = check(project_directory(), "--config", f"config/{name}", **PRODUCTION)

    assert (result.returncode, result.stderr) == (ExitCode.OK, "")
    assert result.stdout.startswith("configuration ok: ")
    assert "note: " not in result.stdout
