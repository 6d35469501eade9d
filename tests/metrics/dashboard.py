"""Writes config/grafana/outboxd.json from the panels."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from outboxd.resources import project_directory
from tests.metrics.panels import ROWS, Panel

PATH: Path = project_directory() / "config" / "grafana" / "outboxd.json"

WIDTH = 24
HEIGHTS: dict[str, int] = {"stat": 4, "timeseries": 8, "table": 8}

JOB = 'job=~"$job"'
QUEUE = f'{JOB},queue=~"$queue"'


def queries() -> Iterator[str]:
    """Every query as Grafana would send it, with its variables."""
    for panels in ROWS.values():
        for panel in panels:
            for query, _ in panel.queries:
                yield _selected(query)


def text() -> str:
    """The dashboard as Grafana imports it."""
    dashboard = {
        "title": "outboxd",
        "uid": "outboxd",
        "tags": ["outboxd"],
        "timezone": "browser",
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": _variables()},
        "panels": list(_panels()),
    }
    return json.dumps(dashboard, indent=1) + "\n"


def _selected(query: str) -> str:
    return query.replace("$s", JOB).replace("$q", QUEUE)


def _variables() -> list[dict[str, Any]]:
    source = {"name": "datasource", "label": "Prometheus", "type": "datasource"}
    return [
        {**source, "query": "prometheus", "current": {}},
        _choice("job", "label_values(outboxd_build_info, job)"),
        _choice("queue", 'label_values(outboxd_concurrency_limit{job=~"$job"}, queue)'),
    ]


def _choice(name: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def _panels() -> Iterator[dict[str, Any]]:
    number = y = 0
    for title, panels in ROWS.items():
        number += 1
        place = {"x": 0, "y": y, "w": WIDTH, "h": 1}
        yield {"id": number, "type": "row", "title": title, "collapsed": False, "gridPos": place}
        y += 1
        x = height = 0
        for panel in panels:
            if x + panel.width > WIDTH:
                x, y = 0, y + height
            number += 1
            height = HEIGHTS[panel.kind]
            place = {"x": x, "y": y, "w": panel.width, "h": height}
            yield {"id": number, "gridPos": place, **_panel(panel)}
            x += panel.width
        y += height


def _panel(panel: Panel) -> dict[str, Any]:
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.help,
        "datasource": _SOURCE,
        "fieldConfig": {"defaults": _looks(panel), "overrides": []},
        "options": _options(panel),
        "targets": [
            {
                "refId": chr(ord("A") + number),
                "datasource": _SOURCE,
                "expr": _selected(query),
                "legendFormat": legend,
                **({"instant": True, "format": "table"} if panel.kind == "table" else {}),
            }
            for number, (query, legend) in enumerate(panel.queries)
        ],
    }


def _looks(panel: Panel) -> dict[str, Any]:
    looks: dict[str, Any] = {"unit": panel.unit, "min": 0}
    if panel.red_from is not None:
        steps = [{"color": "green", "value": None}, {"color": "red", "value": panel.red_from}]
        looks["thresholds"] = {"mode": "absolute", "steps": steps}
    return looks


def _options(panel: Panel) -> dict[str, Any]:
    match panel.kind:
        case "stat":
            return {"colorMode": "background", "reduceOptions": {"calcs": ["lastNotNull"]}}
        case "timeseries":
            return {"legend": {"displayMode": "list", "placement": "bottom"}}
        case "table":
            return {"showHeader": True}
