"""Whatever a user does wrong is a line and an exit code, never a traceback."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from outboxd.cli.main import COMMANDS
from outboxd.core.errors import OutboxdError
from outboxd.core.exit_codes import ExitCode
from outboxd.version import __version__
from tests.cli.conftest import Cli


def outboxd(*argv: str, **kwargs: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "outboxd", *argv],
        capture_output=True,
        text=True,
        timeout=30,
        **kwargs,
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_an_example(command: str, cli: Cli) -> None:
    code, out, _ = cli(command, "--help")

    assert code == ExitCode.OK
    assert out.splitlines()[-1].startswith(f"example: outboxd {command}")


def test_the_help_names_every_command(cli: Cli) -> None:
    code, out, _ = cli("--help")

    assert code == ExitCode.OK
    assert all(command in out for command in COMMANDS)


@pytest.mark.parametrize("argv", [[], ["nonsense"], ["check", "--nonsense"], ["migrate", "over"]])
def test_a_usage_error_is_2(argv: list[str], cli: Cli) -> None:
    code, out, err = cli(*argv)

    assert code == ExitCode.USAGE
    assert out == ""
    assert "usage: outboxd" in err


@pytest.mark.parametrize(
    ("argv", "meant"),
    [
        (["run", "--confg", "x"], '; did you mean "--config"?'),
        (["run", "--confg=x"], '; did you mean "--config"?'),
        (["provision", "--dryrun"], '; did you mean "--dry-run"?'),
        (["check", "--nonsense"], ""),
        (["check", "this"], ""),
    ],
)
def test_what_a_command_does_not_know_is_answered_with_its_own_usage(
    argv: list[str], meant: str, cli: Cli
) -> None:
    err = cli(*argv).err

    assert err.startswith(f"usage: outboxd {argv[0]} [-h]")
    assert err.endswith(
        f"\noutboxd {argv[0]}: error: unrecognized arguments: {' '.join(argv[1:])}{meant}\n"
    )


@pytest.mark.parametrize("command", ["check", "migrate", "provision", "run"])
def test_a_missing_configuration_is_78_and_says_how_to_name_one(
    command: str, cli: Cli, folder: Path
) -> None:
    assert cli(command) == (
        ExitCode.INVALID_CONFIGURATION,
        "",
        "outboxd: there is neither ./outboxd.toml nor ./config/outboxd.toml; "
        "name the configuration with --config or OUTBOXD_CONFIG\n",
    )


def test_the_configuration_is_looked_for_where_people_keep_it(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tried() -> str:
        return cli("check").err.split(": ")[1]

    (folder / "config").mkdir()
    (folder / "config/outboxd.toml").touch()
    assert tried() == "config/outboxd.toml"

    (folder / "outboxd.toml").touch()
    assert tried() == "outboxd.toml"

    monkeypatch.setenv("OUTBOXD_CONFIG", "other.toml")
    assert tried() == "other.toml"


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (OutboxdError("first line\n\tsecond"), 1, "outboxd: first line second\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_what_ends_a_command_is_a_line_and_a_code(
    error: BaseException, code: int, line: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(arguments: object) -> int:
        raise error

    module = importlib.import_module("outboxd.cli.version")
    monkeypatch.setattr(module, "run", fail)

    assert cli("version") == (code, "", line)


def test_a_bug_is_not_hidden(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(arguments: object) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(importlib.import_module("outboxd.cli.version"), "run", fail)

    with pytest.raises(ZeroDivisionError):
        cli("version")


def test_the_version(cli: Cli) -> None:
    assert cli("version") == (ExitCode.OK, f"outboxd {__version__}\n", "")
    assert cli("--version") == (ExitCode.OK, f"outboxd {__version__}\n", "")


def test_the_version_as_json_tells_what_it_runs_on(cli: Cli) -> None:
    told = json.loads(cli("version", "--json").out)

    assert told["outboxd"] == __version__
    assert told["python"] == sys.version.split()[0]
    assert all(told["dependencies"].values())


def test_a_reader_that_has_had_enough_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    process = subprocess.run(
        [sys.executable, "-m", "outboxd", "version"],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        timeout=30,
    )
    os.close(write)

    assert (process.returncode, process.stderr) == (141, "")


def test_the_command_runs_as_a_process_of_its_own(tmp_path: Path) -> None:
    result = outboxd("check", cwd=tmp_path, env={"PATH": os.environ["PATH"]})

    assert result.returncode == ExitCode.INVALID_CONFIGURATION
    assert result.stdout == ""
    assert result.stderr.startswith("outboxd: there is neither ./outboxd.toml nor ")
