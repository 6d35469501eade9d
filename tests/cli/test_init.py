"""The project that `outboxd init` writes works, and it never costs anybody a file."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from outboxd.cli import init
from outboxd.cli.init import STARTER, starter_file
from outboxd.cli.localpostgres import default_directory, url_of
from outboxd.core.exit_codes import ExitCode
from outboxd.resources import project_directory
from tests.cli.conftest import Cli


def tool(folder: Path, *argv: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", *argv],
        cwd=folder,
        env={**os.environ, **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=55,
        check=False,
    )


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_it_writes_the_files_and_says_what_is_next(cli: Cli, folder: Path) -> None:
    code, out, err = cli("init")

    assert (code, err) == (ExitCode.OK, "")
    assert names_in(folder) == set(STARTER)
    written, _, commands = out.partition("\n\n")
    assert [line.split()[1] for line in written.splitlines()] == list(STARTER)
    assert "  outboxd localpostgres\n  outboxd localaws\n  . ./local.env && " in commands


def test_a_directory_that_is_not_there_is_made(cli: Cli, folder: Path) -> None:
    code, out, _ = cli("init", "work/shop")

    assert code == ExitCode.OK
    assert names_in(folder / "work" / "shop") == set(STARTER)
    assert "next, each in a terminal of its own, in work/shop:" in out


def test_other_files_may_be_there(cli: Cli, folder: Path) -> None:
    (folder / "LICENSE").touch()

    assert cli("init").code == ExitCode.OK
    assert names_in(folder) == {"LICENSE", *STARTER}


def test_the_configuration_passes_the_check(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://localhost/shop")
    cli("init")

    result = tool(folder, "outboxd", "check")

    assert result.stdout == "configuration ok: 1 route, 1 queue, 1 handler\n"


def test_its_tests_pass(cli: Cli, folder: Path, bare_database: str) -> None:
    cli("init")

    result = tool(folder, "pytest", "-q", DATABASE_URL=bare_database)

    assert "3 passed" in result.stdout, result.stdout


def test_its_tests_are_not_disturbed_by_orders(cli: Cli, folder: Path, database: str) -> None:
    cli("init")
    subprocess.run(
        [sys.executable, "shop.py"],
        cwd=folder,
        env={**os.environ, "DATABASE_URL": database},
        check=True,
    )

    result = tool(folder, "pytest", "-q", DATABASE_URL=database)

    assert "3 passed" in result.stdout, result.stdout


def test_the_code_is_formatted_as_a_fresh_project_would_have_it(cli: Cli, folder: Path) -> None:
    cli("init")

    formatted = tool(folder, "ruff", "format", "--isolated", "--check", ".")
    linted = tool(folder, "ruff", "check", "--isolated", "--select", "E,F,I,B,UP,N,SIM", ".")

    assert (formatted.returncode, linted.returncode) == (0, 0), formatted.stdout + linted.stdout


@pytest.mark.system
def test_the_code_is_typed(cli: Cli, folder: Path) -> None:
    cli("init")

    source = str(project_directory() / "daemon")
    result = tool(folder, "mypy", "--strict", ".", MYPYPATH=source)

    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("name", STARTER)
def test_a_file_that_is_there_is_named_and_nothing_is_written(
    name: str, cli: Cli, folder: Path
) -> None:
    (folder / name).write_text("mine")

    assert cli("init") == (
        ExitCode.UNEXPECTED,
        "",
        f"outboxd: {name}: there already, so nothing was written; name another directory\n",
    )
    assert names_in(folder) == {name}
    assert (folder / name).read_text() == "mine"


def test_a_second_init_names_every_file(cli: Cli, folder: Path) -> None:
    cli("init")

    err = cli("init").err

    assert err.startswith(f"outboxd: {', '.join(STARTER)}: there already")


def test_nothing_is_written_through_a_link_that_leads_nowhere(cli: Cli, folder: Path) -> None:
    (folder / "shop.py").symlink_to(folder / "elsewhere")

    assert cli("init").code == ExitCode.UNEXPECTED
    assert names_in(folder) == {"shop.py"}


def test_a_file_that_comes_meanwhile_is_not_overwritten_and_nothing_else_is_left(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(init, "_refuse_to_overwrite", lambda directory: None)
    (folder / "outboxd.toml").write_text("mine")

    code, out, err = cli("init")

    assert (code, out) == (ExitCode.UNEXPECTED, "")
    assert err == "outboxd: cannot write outboxd.toml: File exists; nothing was written\n"
    assert names_in(folder) == {"outboxd.toml"}
    assert (folder / "outboxd.toml").read_text() == "mine"


def test_a_directory_that_was_made_for_it_goes_with_the_files(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the disk is full after some of them."""
    monkeypatch.setitem(STARTER, "notes/missing.py", "")
    monkeypatch.setattr(init, "starter_file", lambda name: b"")

    code, _, err = cli("init", "work/shop")

    assert code == ExitCode.UNEXPECTED
    assert err.count("\n") == 1
    assert names_in(folder) == set()


def test_a_file_is_no_directory(cli: Cli, folder: Path) -> None:
    (folder / "shop").touch()

    code, _, err = cli("init", "shop")

    assert code == ExitCode.UNEXPECTED
    assert err == "outboxd: cannot write shop: File exists; nothing was written\n"


def test_the_package_holds_these_files_and_no_others() -> None:
    starter = project_directory() / "daemon" / "outboxd" / "starter"

    assert names_in(starter) == {f"{name.removeprefix('.')}.txt" for name in STARTER}
    assert all(starter_file(name).endswith(b"\n") for name in STARTER)


@pytest.mark.parametrize("environ", [{}, {"TMPDIR": "/var/tmp"}])
def test_its_environment_names_the_local_postgres(
    environ: dict[str, str], cli: Cli, folder: Path
) -> None:
    cli("init")
    told = subprocess.run(
        ["sh", "-euc", '. ./local.env; printf %s "$DATABASE_URL"'],
        env={"PATH": os.environ["PATH"], **environ},
        capture_output=True,
        text=True,
        check=True,
    )

    assert told.stdout == url_of(default_directory(environ))
