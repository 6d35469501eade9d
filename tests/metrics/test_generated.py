"""What is made from code is as the code is now: `python -m tests.metrics` writes it anew."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.metrics import dashboard, page
from tests.metrics.catalogue import catalogue, names
from tests.metrics.rules import metrics_of


@pytest.mark.parametrize(
    ("path", "text"),
    [(page.PATH, page.page), (page.INDEX, page.index), (dashboard.PATH, dashboard.text)],
    ids=["docs/metrics.md", "docs/runbooks/README.md", "config/grafana/outboxd.json"],
)
def test_the_file_is_up_to_date(path: Path, text: Callable[[], str]) -> None:
    assert path.read_text(encoding="utf-8") == text(), "run: python -m tests.metrics"


def test_every_metric_of_the_dashboard_exists() -> None:
    used = {metric for query in dashboard.queries() for metric in metrics_of(query)}
    assert used - names() == set()


def test_every_family_has_one_place_a_text_and_a_name_that_prometheus_likes() -> None:
    entries = [entry for group in catalogue().values() for entry in group]
    assert len({entry.name for entry in entries}) == len(entries)
    for entry in entries:
        assert len(entry.help) > 5, entry.name
        assert (entry.type == "counter") == entry.name.endswith("_total"), entry.name


def test_the_panels_do_not_overlap_and_have_numbers_of_their_own() -> None:
    panels = json.loads(dashboard.text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken = [
        (place["x"] + x, place["y"] + y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["w"])
        for y in range(place["h"])
    ]
    assert len(set(taken)) == len(taken)
    assert all(x < dashboard.WIDTH for x, _ in taken)
