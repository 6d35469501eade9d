"""Reading the configuration in a process that is thrown away, whatever handlers do at import."""

import asyncio
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec
import pytest

from outboxd.core.clock import boottime
from outboxd.core.errors import SettingsError
from outboxd.core.settings import Settings, SupervisorSettings
from outboxd.supervision import configuration_file
from outboxd.supervision.configuration_file import ConfigurationFile
from outboxd.supervision.process import Grip

pytestmark = pytest.mark.filterwarnings("ignore:.*os.fork:DeprecationWarning")

CONFIGURATION = """
[queues.orders]
[[queues.orders.handlers]]
event = "*"
handler = "staged:handle"
name = "staged"
inbox = "off"
"""
RELAY = """
[database]
url = "postgresql://localhost/shop"
[relay]
[[relay.routes]]
events = "*"
to = ["sqs:orders"]
"""
HANDLER = """
def handle(event):
    pass
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "outboxd.toml"
    path.write_text(CONFIGURATION)
    stage(path, "")
    return path


@pytest.fixture
def watched_by_pidfd() -> Iterator[None]:
    """A loop that reaps in its own thread, as that of Python 3.12 always does."""
    if sys.version_info >= (3, 12):
        yield
        return
    policy = asyncio.get_event_loop_policy()
    before = policy.get_child_watcher()
    policy.set_child_watcher(asyncio.PidfdChildWatcher())
    yield
    policy.set_child_watcher(before)


def write(path: Path, text: str) -> None:
    path.write_text(text)


def number_in(path: Path) -> int:
    """What a process writes there, once it has."""
    while not (path.exists() and (text := path.read_text())):
        time.sleep(0.02)
    return int(text)


def runs(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def stage(path: Path, at_import: str) -> None:
    (path.parent / "staged.py").write_text(at_import + HANDLER)


def source(path: Path, seconds: float = 30, only: str | None = None) -> ConfigurationFile:
    return ConfigurationFile(path, only, lambda _: None, seconds=seconds)


async def refusal(source: ConfigurationFile) -> str:
    with pytest.raises(SettingsError) as refused:
        await source.read()
    return str(refused.value)


@pytest.mark.parametrize(
    "at_import",
    [
        "",
        "print('hello'); import os; os.write(1, b'hello')\n",
        "import threading, time; threading.Thread(target=time.sleep, args=[60]).start()\n",
        "import subprocess; subprocess.Popen(['sleep', '2'])\n",
    ],
    ids=["quiet", "talkative", "with a thread", "with a process"],
)
async def test_the_settings_are_those_of_the_file(path: Path, at_import: str) -> None:
    stage(path, at_import)

    settings = await source(path).read()

    assert settings.consumed == ("orders",)
    assert [spec.name for spec in source(path).children(settings)] == [
        "extender",
        "consumer:orders/1",
    ]
    assert "staged" not in sys.modules


@pytest.mark.parametrize(
    ("at_import", "why"),
    [
        ("import os; os._exit(0)\n", "ended before it was done"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)\n", "ended before it was done"),
        ("raise SystemExit(0)\n", "could not be imported: SystemExit: 0"),
        ("1 / 0\n", "ZeroDivisionError"),
    ],
)
async def test_what_an_import_does_it_does_to_itself(path: Path, at_import: str, why: str) -> None:
    stage(path, at_import)

    assert why in await refusal(source(path))


async def test_secrets_that_an_import_raises_are_told_to_nobody(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer of a reload, and with it the service manager, has what the module raised."""
    url = "postgresql://shop:hunter2hunter2@localhost/shop"
    monkeypatch.setenv("DATABASE_URL", url)
    write(path, CONFIGURATION + '[database]\nurl = "${DATABASE_URL}"\n')
    stage(path, "import os; raise RuntimeError(f'cannot reach {os.environ[\"DATABASE_URL\"]}')\n")

    told = await refusal(source(path))

    assert "RuntimeError: cannot reach ***" in told
    assert "hunter2" not in told
    assert "localhost" not in told


async def test_an_import_that_hangs_is_ended(path: Path) -> None:
    stage(
        path,
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)\n",
    )
    began = boottime()

    assert "took more than 2 s" in await refusal(source(path, seconds=2))

    assert boottime() - began < 20


async def test_the_bound_of_the_imports_is_that_of_the_configuration_in_use(path: Path) -> None:
    patient = source(path, seconds=0.001)
    assert "took more than 0.001 s" in await refusal(patient)

    patient.adopted(Settings(supervisor=SupervisorSettings(start_deadline_seconds=30)))

    assert (await patient.read()).consumed == ("orders",)


async def test_handlers_that_run_elsewhere_need_not_be_here(path: Path) -> None:
    write(path, CONFIGURATION.replace("staged:", "nowhere:") + RELAY)

    settings = await source(path, only="relay").read()

    assert settings.consumed == ("orders",)
    assert "nowhere" in await refusal(source(path, only="consumer:orders"))


async def test_every_problem_is_told(path: Path) -> None:
    write(path, CONFIGURATION.replace("event =", "evnt =") + "concurency = 4\n")

    told = await refusal(source(path))

    assert f"{path}: [[queues.orders.handlers]] #1 (staged) evnt: unknown key" in told
    assert "concurency: unknown key" in told


async def test_another_version_of_outboxd_is_for_a_restart(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(configuration_file, "__version__", "0.0.1")

    told = await refusal(source(path))

    assert "is installed now, and this is 0.0.1: restart it to use the new one" in told


async def test_another_version_is_told_although_its_settings_mean_nothing_here(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = msgspec.msgpack.encode({"version": "99.1", "settings": {"quantum": True}})
    (path.parent / "newer.py").write_text(f"import os; os.write(1, {answer!r})")
    monkeypatch.setenv("PYTHONPATH", str(path.parent))

    newer = ConfigurationFile(path, None, lambda _: None, seconds=30, module="newer")

    assert "outboxd 99.1 is installed now" in await refusal(newer)


async def test_a_check_that_is_cancelled_leaves_no_process(path: Path, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    stage(
        path,
        "import os, pathlib, time\n"
        f"pathlib.Path({str(pid_file)!r}).write_text(str(os.getpid()))\n"
        "time.sleep(600)\n",
    )

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(source(path).read)
        pid = await anyio.to_thread.run_sync(number_in, pid_file)
        assert runs(pid)
        tasks.cancel_scope.cancel()

    assert not runs(pid)


async def test_a_check_that_has_just_ended_is_reaped_by_the_loop_that_waits_for_it(
    caplog: pytest.LogCaptureFixture, watched_by_pidfd: None
) -> None:
    """As Popen does it, sending a signal begins by reaping what has ended: asyncio would look for
    the process in vain, warn of it and report 255."""
    process = await anyio.open_process([sys.executable, "-c", ""])
    grip = Grip(process)
    # Waited for without the loop, which is not to hear of it yet, and without reaping it.
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222

    await configuration_file._end(process, grip)

    assert process.returncode == 0
    assert [record for record in caplog.records if record.name == "asyncio"] == []


async def test_no_interpreter_is_no_end_of_the_daemon(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")

    assert "cannot be checked" in await refusal(source(path))
