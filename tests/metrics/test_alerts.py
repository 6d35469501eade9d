"""Every alert fires on what it is for, is silent otherwise, and has a page that helps."""

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from outboxd.cli.main import _parser
from tests.metrics.catalogue import families, names
from tests.metrics.rules import PATH, RUNBOOKS, metrics_of, rendered, rules
from tests.metrics.stories import JOB, STORIES, Story

SECTIONS = ["What it means", "What to look at", "What to do", "What not to do"]


def test_there_are_stories_of_every_alert_firing_and_silent() -> None:
    assert {story.alert for story in STORIES if story.fires} == rules().keys()
    assert {story.alert for story in STORIES if not story.fires} == rules().keys()


def test_every_metric_of_a_rule_exists() -> None:
    used = {metric for rule in rules().values() for metric in metrics_of(rule.expr)}
    assert used - names() == set()


def test_every_alert_says_whom_it_wakes_and_where_to_read_on() -> None:
    for name, rule in rules().items():
        assert rule.labels["severity"] in {"page", "warning"}, name
        assert rule.annotations["runbook_url"] == f"docs/runbooks/{name}.md"
        assert {"summary", "description"} < rule.annotations.keys()


def test_every_alert_has_a_page_and_every_page_an_alert() -> None:
    pages = {page.stem for page in RUNBOOKS.glob("Outboxd*.md")}
    assert pages == rules().keys()


@pytest.mark.parametrize("alert", rules())
def test_a_page_tells_what_it_has_to(alert: str) -> None:
    text = (RUNBOOKS / f"{alert}.md").read_text(encoding="utf-8")

    assert text.startswith(f"# {alert}\n")
    assert re.findall(r"^## (.*)$", text, re.M) == SECTIONS
    assert metrics_of(text) - names() - families() == set()
    for target in re.findall(r"\]\(([^)#]+)", text):
        assert (RUNBOOKS / target).exists(), target


COMMANDS = [
    (page.stem, command)
    for page in sorted(RUNBOOKS.glob("*.md"))
    for command in re.findall(r"`outboxd ([a-z][^`]*)`", page.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize(("alert", "command"), COMMANDS)
def test_a_command_of_a_page_is_understood(alert: str, command: str) -> None:
    some = {"SEQ": "42", "EVENT_ID": str(UUID(int=42))}
    asked = _parser().parse_args([some.get(word, word) for word in shlex.split(command)])
    if command.startswith("dlq purge"):  # which is refused without either
        assert asked.all or asked.type or asked.reason or asked.handler or asked.id


@pytest.mark.packages
def test_promtool_understands_the_rules() -> None:
    done = subprocess.run(
        [_promtool(), "check", "rules", str(PATH)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.packages
def test_the_alerts_fire_and_are_silent_as_they_should(tmp_path: Path) -> None:
    (tmp_path / "stories.yml").write_text(json.dumps(_unit_tests(STORIES)))  # JSON is YAML

    done = subprocess.run(
        [_promtool(), "test", "rules", str(tmp_path / "stories.yml")],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr


def _promtool() -> str:
    promtool = shutil.which("promtool")
    assert promtool, "promtool is in Debian's package prometheus: see tests/system/install-packages"
    return promtool


def _unit_tests(stories: Sequence[Story]) -> dict[str, Any]:
    return {"rule_files": [str(PATH)], "tests": [_unit_test(story) for story in stories]}


def _unit_test(story: Story) -> dict[str, Any]:
    rule = rules()[story.alert]
    expected = [
        {
            "exp_labels": {**labels, **rule.labels},
            "exp_annotations": {
                name: rendered(text, labels) for name, text in rule.annotations.items()
            },
        }
        for labels in story.fires
    ]
    series = [
        {"series": _with_job(selector), "values": values}
        for selector, values in story.series.items()
    ]
    about = {"eval_time": f"{story.minute}m", "alertname": story.alert, "exp_alerts": expected}
    return {"interval": "1m", "input_series": series, "alert_rule_test": [about]}


def _with_job(selector: str) -> str:
    name, _, labels = selector.rstrip("}").partition("{")
    pairs = [labels] if labels else []
    pairs += [f'{label}="{value}"' for label, value in JOB.items()]
    return f"{name}{{{','.join(pairs)}}}"
