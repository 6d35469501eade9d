from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.errors import BenchmarkError
from benchmarks.readme import BEGIN, END, README, with_results
from benchmarks.report import Results, table

RESULTS = Results({"cpus": 2}, {"outboxd": "1"}, 3, {"celery": "there is no celery"}, [], [])


def test_results_replace_what_was_between_the_marks_and_nothing_else() -> None:
    text = f"before\n{BEGIN}\nold\n{END}\nafter\n"

    once = with_results(text, RESULTS)

    assert once == f"before\n{BEGIN}\n```\n{table(RESULTS)}\n```\n{END}\nafter\n"
    assert with_results(once, RESULTS) == once


def test_a_text_without_marks_is_left_alone() -> None:
    with pytest.raises(BenchmarkError, match="has no"):
        with_results("before and after", RESULTS)


def test_the_readme_has_a_place_for_results() -> None:
    assert "before any results" not in with_results(README.read_text(), RESULTS)


def test_who_was_absent_is_in_the_table() -> None:
    assert "without celery: there is no celery" in table(RESULTS)


def test_results_of_another_version_are_told_plainly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    latest = tmp_path / "latest.json"
    latest.write_text('{"machine": {}}')
    monkeypatch.setattr("sys.argv", ["benchmarks", "--update-readme", "--output", str(latest)])

    assert main() == 1
    assert "another version" in capsys.readouterr().err
