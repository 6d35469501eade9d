import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.catalogue import FLOOR, OUTBOXD, SCENARIOS
from benchmarks.figures import CALLS, RATE, RATIO
from benchmarks.place import PROJECT

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

EVENTS = 200
FAMILIES = ("effect", "relay")
COMMAND = (
    *(sys.executable, "-m", "benchmarks", "--rounds=1", f"--events={EVENTS}"),
    *("--only", *FAMILIES, "--subjects", OUTBOXD, FLOOR),
)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a short run has written; it fails by itself if anything was lost or done twice."""
    path = tmp_path_factory.mktemp("benchmarks") / "latest.json"
    run = subprocess.run(
        [*COMMAND, "--output", path], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert "wanted" in run.stdout, "the targets are printed as well"
    return path


def test_every_benchmark_compares_the_daemon_with_its_floor(results: Path) -> None:
    rows = json.loads(results.read_text())["rows"]

    compared = {(row["benchmark"], row["subject"]) for row in rows if row["metric"] == RATE}
    assert compared == {
        (scenario.name, subject)
        for scenario in SCENARIOS
        for subject in (OUTBOXD, FLOOR, RATIO.format(FLOOR))
        if scenario.family in FAMILIES
    }
    assert all(row["median"] > 0 for row in rows if row["metric"] == RATE)


def test_full_batches_need_a_hundred_sends_per_thousand_events(results: Path) -> None:
    rows = json.loads(results.read_text())["rows"]

    calls = {
        row["subject"]: row["median"]
        for row in rows
        if row["benchmark"] == "relay" and row["metric"] == CALLS
    }
    assert calls[FLOOR] == 100
    assert calls[OUTBOXD] < 200


def test_the_results_name_no_machine(results: Path) -> None:
    machine = json.loads(results.read_text())["machine"]

    assert set(machine) == {"cpus", "system", "architecture", "python", "load before"}
