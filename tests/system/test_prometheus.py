"""A real Prometheus scrapes a daemon: its dashboards have answers, its counters never go back."""

import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from outboxd.core.clock import boottime
from outboxd.demo.killer import killing
from tests.metrics import dashboard
from tests.system.prometheus import Prometheus, prometheus
from tests.system.scene import Scene, eventually, handler

KILL_SECONDS = float(os.environ.get("OUTBOXD_KILL_SECONDS", "12"))
"""180 for the long run by hand."""

pytestmark = [pytest.mark.packages, pytest.mark.timeout(KILL_SECONDS + 150)]

COUNTERS = '{__name__=~"outboxd_.+_(total|count|sum|bucket)"}'


def asked(query: str) -> str:
    """A query of the dashboard, all jobs and queues chosen."""
    return (
        query.replace("$__rate_interval", "10s").replace("$job", ".*").replace("$queue", ".*")
    )  # fmt: skip


def may_be_empty(query: str) -> bool:
    """What shows trouble only, or a call that runs now."""
    return "> 0" in query or 'result!="ok"' in query


def scrapes_of(server: Prometheus) -> int:
    return int(server.value("count_over_time(up[1h])") or 0)


def scraped(server: Prometheus, times: int) -> None:
    eventually(lambda: scrapes_of(server) >= times)


def went_back(series: dict[str, Any]) -> bool:
    values = [float(text) for _, text in series["values"]]
    return any(later < earlier for earlier, later in pairwise(values))


def vanished(series: dict[str, Any], all_series: list[dict[str, Any]]) -> bool:
    """Whether it was missing in a scrape after its first, or in the last."""
    scrapes = {at for each in all_series for at, _ in each["values"]}
    times = {at for at, _ in series["values"]}
    return any(at > min(times) for at in scrapes - times)


def test_every_query_of_the_dashboard_has_an_answer_and_no_alert_is_wrong(
    scene: Scene, tmp_path: Path
) -> None:
    scene.configure(handler("note"))
    with scene.daemon(), prometheus(scene.address, tmp_path) as server:
        scene.publish("note.wanted", 20)
        eventually(lambda: len(scene.effects("note")) == 20)
        # The depth of the queue is counted every 15 seconds.
        eventually(lambda: server.query("outboxd_queue_messages") != [], seconds=40)
        scraped(server, 12)

        answers = {query: server.query(asked(query)) for query in dashboard.queries()}
        rules = server.rules()

    assert [query for query in answers if not answers[query] and not may_be_empty(query)] == []
    assert [rule for rule in rules if rule["health"] != "ok"] == []
    assert [rule["name"] for rule in rules if rule["state"] != "inactive"] == []


def test_no_counter_goes_back_and_no_scrape_fails_while_children_are_killed(
    scene: Scene, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    scene.configure(handler("note"))
    text = scene.configuration.read_text()
    scene.configuration.write_text(
        text.replace(
            "crashes = 100",
            "crashes = 1000\nfailed_starts = 1000\nbackoff_cap_seconds = 0.2",
        )
    )
    published: list[str] = []
    with scene.daemon() as daemon, prometheus(scene.address, tmp_path) as server:
        with killing(daemon.pid, 1.0, seed=7) as killer:
            assert killer is not None
            enough = boottime() + KILL_SECONDS
            while boottime() < enough:
                published += scene.publish("note.wanted", 5)
                scraped(server, scrapes_of(server) + 1)
            kills = killer.kills
        eventually(lambda: len(scene.effects("note")) == len(published), seconds=60)
        scraped(server, scrapes_of(server) + 3)

        counters = server.query(f"{COUNTERS}[1h]")
        worst = server.value("min_over_time(up[1h])")
        slowest = server.value("max_over_time(scrape_duration_seconds[1h])")
        scrapes = scrapes_of(server)
        restarts = server.value("sum(outboxd_child_restarts_total)")

    for name, value in (("kills", kills.total), ("scrapes", scrapes), ("slowest", slowest)):
        record_property(name, value)  # shown by --junitxml=FILE -o junit_family=xunit1
    record_property("restarts", restarts)
    record_property("series", len(counters))
    assert len(counters) > 300
    assert [each["metric"] for each in counters if went_back(each)] == []
    assert [each["metric"] for each in counters if vanished(each, counters)] == []
    assert worst == 1, "a scrape failed"
    assert slowest is not None
    assert slowest < 1
    assert scrapes >= KILL_SECONDS / 2
    assert restarts is not None
    assert restarts >= kills.total - 1 > KILL_SECONDS / 2
    assert sorted(scene.effects("note")) == sorted(published), "each once"
