"""A minute of `python tests/chaos`, whose own time this is; docs/chaos.md tells of the rest."""

import subprocess
import sys
from pathlib import Path

import pytest

CHAOS = Path(__file__).parents[1] / "chaos"


@pytest.mark.system
@pytest.mark.timeout(300)
def test_a_minute_of_harm_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    """The seed is a new one each time, and printed: a failure here is had again with it."""
    ended = subprocess.run(
        [sys.executable, str(CHAOS), "--seconds", "60"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
