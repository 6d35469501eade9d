"""The unit, as systemd reads it; tests/supervision/test_sd_notify.py is about what it is told."""

import shutil
import subprocess
from pathlib import Path

import pytest

from outboxd.resources import project_directory

pytestmark = pytest.mark.packages

UNIT = project_directory() / "systemd" / "outboxd.service"

SYSTEM_UNITS = Path("/usr/lib/systemd/system")

MOST_EXPOSURE = 20
"""Tenths: 2.0 of 10."""


def analyze(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["systemd-analyze", *arguments], capture_output=True, text=True, check=False
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root in which everything that the unit names is there, with systemd's own units."""
    for program in ("opt/outboxd/bin/outboxd", "bin/kill"):
        path = tmp_path / program
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o755)
    units = tmp_path / "usr/lib/systemd/system"
    shutil.copytree(SYSTEM_UNITS, units, symlinks=True, ignore_dangling_symlinks=True)
    installed = tmp_path / "etc/systemd/system"
    installed.mkdir(parents=True)
    shutil.copy(UNIT, installed)
    return tmp_path


def test_systemd_has_nothing_to_say_about_the_unit(root: Path) -> None:
    verified = analyze("verify", f"--root={root}", "outboxd.service")

    # It exits with 0 for a key that it does not know, and says so.
    assert (verified.stdout, verified.stderr, verified.returncode) == ("", "", 0)


def test_a_mistake_in_the_unit_would_be_seen(root: Path) -> None:
    unit = root / "etc/systemd/system/outboxd.service"
    unit.write_text(unit.read_text().replace("WatchdogSec=", "WatchdogSecs="))

    assert "WatchdogSecs" in analyze("verify", f"--root={root}", "outboxd.service").stderr


def test_the_unit_is_hardened() -> None:
    arguments = ["--offline=true", f"--threshold={MOST_EXPOSURE}", str(UNIT)]

    assert analyze("security", *arguments).returncode == 0
