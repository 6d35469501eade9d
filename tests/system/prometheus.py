"""A Prometheus of the test's own, which scrapes one daemon and evaluates our alerts."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from outboxd.demo.http import get
from outboxd.resources import project_directory
from tests.system.scene import eventually, free_port

RULES = project_directory() / "config" / "prometheus" / "outboxd.rules.yml"

CONFIGURATION = """
global:
  scrape_interval: 1s
  scrape_timeout: 1s
  evaluation_interval: 1s
rule_files: ["{rules}"]
scrape_configs:
  - job_name: outboxd
    static_configs:
      - targets: ["{target}"]
"""


class Prometheus:
    """A running one."""

    def __init__(self, address: str) -> None:
        self._address = address

    def query(self, query: str) -> list[dict[str, Any]]:
        """The result's series: labels as `metric`, time and text as `value`."""
        data: dict[str, Any] = self._ask("/api/v1/query", query=query)
        return list(data["result"])

    def value(self, query: str) -> float | None:
        """The value of a result with at most one series."""
        found = self.query(query)
        assert len(found) <= 1, found
        return float(found[0]["value"][1]) if found else None

    def rules(self) -> list[dict[str, Any]]:
        """Our alerts, each with `health` and `state`."""
        groups = self._ask("/api/v1/rules")["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def _ask(self, path: str, **parameters: str) -> Any:
        answer = get(self._address, f"{path}?{urlencode(parameters)}")
        assert answer is not None, "Prometheus does not answer"
        told = json.loads(answer[1])
        assert told["status"] == "success", (parameters, told)
        return told["data"]


@contextmanager
def prometheus(target: str, folder: Path) -> Iterator[Prometheus]:
    """Scrapes `target` every second while the block lasts."""
    binary = shutil.which("prometheus")
    assert binary, "prometheus is a Debian package: see tests/system/install-packages"
    configuration = folder / "prometheus.yml"
    configuration.write_text(CONFIGURATION.format(rules=RULES, target=target))
    address = f"127.0.0.1:{free_port()}"
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [
                binary,
                f"--config.file={configuration}",
                f"--storage.tsdb.path={folder / 'tsdb'}",
                f"--web.listen-address={address}",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        eventually(lambda: _is_ready(address))
        yield Prometheus(address)
    finally:
        process.terminate()
        process.wait(20)


def _is_ready(address: str) -> bool:
    answer = get(address, "/-/ready")
    return answer is not None and answer[0] == 200
