"""What the demo starts, and that it goes away."""

import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import psycopg
import pytest

from outboxd.demo.aws import PLACEHOLDER_CREDENTIALS, check_endpoint, is_aws, local_aws
from outboxd.demo.database import demo_database
from outboxd.demo.errors import DemoError
from outboxd.demo.metrics import ChildView, children, pids

HEALTH = (
    "consumer:a/1 is backoff\n"
    "consumer:a/1\tbackoff\tpid=-\trestarts=1\theartbeat_age=-\n"
    "relay\tready\tpid=4711\trestarts=3\theartbeat_age=0.3s\n"
)
EXPOSITION = """\
# TYPE outboxd_child_state gauge
outboxd_child_state{child="relay",state="ready"} 1
outboxd_child_state{child="relay",state="backoff"} 0
outboxd_child_state{child="consumer:a/1",state="ready"} 0
outboxd_child_state{child="consumer:a/1",state="backoff"} 1
# TYPE outboxd_child_restarts_total counter
outboxd_child_restarts_total{child="relay",reason="crash"} 1
outboxd_child_restarts_total{child="relay",reason="signal"} 2
# TYPE outboxd_child_resident_memory_bytes gauge
outboxd_child_resident_memory_bytes{child="relay"} 4.2e+07
# TYPE outboxd_build_info gauge
outboxd_build_info{version="1"} 1
"""


def test_children_are_read_from_the_metrics() -> None:
    assert children(EXPOSITION) == (
        ChildView(name="consumer:a/1", state="backoff", restarts=0, rss_bytes=0),
        ChildView(name="relay", state="ready", restarts=3, rss_bytes=42_000_000),
    )


def test_process_ids_are_read_from_the_answer_about_health() -> None:
    assert pids(HEALTH) == {"relay": 4711}


def test_a_local_aws_answers_while_the_block_lasts(tmp_path: Path) -> None:
    with local_aws(tmp_path / "log") as endpoint:
        assert answers(endpoint)

    assert not answers(endpoint)


def test_a_local_aws_does_not_outlive_a_killed_owner(tmp_path: Path) -> None:
    owner = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, time, pathlib; from outboxd.demo.aws import local_aws\n"
            "with local_aws(pathlib.Path(sys.argv[1])) as endpoint:\n"
            "    print(endpoint, flush=True)\n"
            "    time.sleep(600)",
            str(tmp_path / "log"),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout is not None
    endpoint = owner.stdout.readline().strip()
    assert endpoint.startswith("http://127.0.0.1:")

    owner.send_signal(signal.SIGKILL)
    owner.wait()
    owner.stdout.close()

    deadline = time.monotonic() + 5
    while answers(endpoint):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def answers(endpoint: str) -> bool:
    try:
        with urllib.request.urlopen(f"{endpoint}/_localaws/queues", timeout=10):
            return True
    except OSError:
        return False


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of this test alone: the demo would put some into the environment for good."""
    for name in PLACEHOLDER_CREDENTIALS:
        monkeypatch.setenv(name, "test")


@pytest.mark.usefixtures("credentials")
def test_a_given_aws_that_answers_is_in_order(tmp_path: Path) -> None:
    with local_aws(tmp_path / "log") as endpoint:
        check_endpoint(endpoint)


@pytest.mark.usefixtures("credentials")
def test_a_given_aws_that_does_not_answer_is_the_options_fault() -> None:
    with pytest.raises(DemoError, match=r"--aws-endpoint http://127.0.0.1:9 does not work"):
        check_endpoint("http://127.0.0.1:9")


@pytest.mark.usefixtures("credentials")
def test_a_given_aws_that_is_no_url_is_the_options_fault() -> None:
    with pytest.raises(DemoError, match=r"--aws-endpoint: Invalid endpoint: shop"):
        check_endpoint("shop")


def test_placeholder_credentials_are_only_for_services_that_are_not_amazons() -> None:
    assert is_aws("https://sqs.ap-southeast-1.amazonaws.com")
    assert is_aws("https://sqs.cn-north-1.amazonaws.com.cn/")
    assert not is_aws("http://127.0.0.1:4566")
    assert not is_aws("http://amazonaws.com.example.org")


def test_a_database_on_a_given_server_is_new_and_is_dropped(bare_database: str) -> None:
    with demo_database(bare_database) as dsn, psycopg.connect(dsn) as connection:
        ((name,),) = connection.execute("SELECT current_database()").fetchall()
        assert name.startswith("outboxd_demo_")

    with psycopg.connect(bare_database) as connection:
        left = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,))
        assert left.fetchall() == []


def test_a_server_that_is_not_there_is_told(tmp_path: Path) -> None:
    with (
        pytest.raises(DemoError, match="--database-url needs a role"),
        demo_database(f"host={os.fspath(tmp_path)} dbname=postgres"),
    ):
        pytest.fail("there is no server")
