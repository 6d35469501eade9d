"""The alerts as config/prometheus has them, and the names of metrics in a query."""

import re
from pathlib import Path
from typing import Any

import msgspec
import yaml

from outboxd.resources import project_directory

PATH: Path = project_directory() / "config" / "prometheus" / "outboxd.rules.yml"
RUNBOOKS: Path = project_directory() / "docs" / "runbooks"

_METRIC = re.compile(r"\b(?:outboxd|process)_[a-z0-9_]+")


class Rule(msgspec.Struct, frozen=True, rename={"for_": "for"}):
    """One alert."""

    alert: str
    expr: str
    labels: dict[str, str]
    annotations: dict[str, str]
    for_: str = "0m"


def rules() -> dict[str, Rule]:
    """Every alert by its name, in the order of the file."""
    parsed: Any = yaml.safe_load(PATH.read_text(encoding="utf-8"))
    found = [
        msgspec.convert(rule, Rule, strict=True)
        for group in parsed["groups"]
        for rule in group["rules"]
    ]
    assert len({rule.alert for rule in found}) == len(found), "a name appears twice"
    return {rule.alert: rule for rule in found}


def metrics_of(query: str) -> set[str]:
    """The metrics that a query reads."""
    return set(_METRIC.findall(query))


def rendered(template: str, labels: dict[str, str]) -> str:
    """An annotation as Prometheus fills it in; it may use labels, and nothing else."""
    text = re.sub(r"{{ \$labels\.(\w+) }}", lambda match: labels.get(match.group(1), ""), template)
    assert "{{" not in text, template
    return text
