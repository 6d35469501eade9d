"""A configuration whose queues, topic, bus and tables are all as they should be, until a test
stages something else."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import boto3
import psycopg

from outboxd.adapters.configuration import load_settings
from outboxd.adapters.live.aws import aws_facts
from outboxd.adapters.live.postgres import database_facts
from outboxd.core.live.facts import Facts
from outboxd.core.live.finding import Finding
from outboxd.core.live_findings import live_findings
from outboxd.core.settings import Settings
from tests.cli.conftest import Cli, Ran

CONFIGURATION = """
[database]
url = "{url}"
{database}
[aws]
endpoint_url = "{endpoint}"
read_timeout_seconds = 2.0

[relay]
{relay}
[[relay.routes]]
events = "order.*"
to = ["sns:order-topic", "eventbridge:shop"]

[[relay.routes]]
events = "*"
to = ["sqs:orders"]

[destinations.sns.order-topic]
[[destinations.sns.order-topic.subscriptions]]
queue = "orders"
events = ["order.*"]

[destinations.eventbridge.shop]
source = "shop"
[[destinations.eventbridge.shop.rules]]
name = "audit"
to = ["sqs:audit"]

[queues.audit]

[queues.orders]
{orders}
[[queues.orders.handlers]]
event = "*"
handler = "tests.cli.live_handlers:on_event"
name = "orders.on_event"
"""


class Live:
    """Runs the check, and changes what it looks at."""

    def __init__(self, cli: Cli, folder: Path, url: str, endpoint: str) -> None:
        self.cli = cli
        self.url = url
        self.endpoint = endpoint
        self._file = folder / "outboxd.toml"
        self.configure()

    def configure(
        self,
        *,
        url: str | None = None,
        endpoint: str | None = None,
        database: str = "",
        relay: str = "",
        orders: str = "",
    ) -> None:
        self._file.write_text(
            CONFIGURATION.format(
                url=url or self.url,
                endpoint=endpoint or self.endpoint,
                database=database,
                relay=relay,
                orders=orders,
            )
        )

    def check(self, *argv: str) -> Ran:
        return self.cli("check", "--live", *argv)

    def findings(self, *argv: str) -> list[dict[str, Any]]:
        """As the document has them; nothing but the document is printed."""
        ran = self.check("--json", *argv)
        assert ran.err == ""
        found: list[dict[str, Any]] = json.loads(ran.out)["findings"]
        return found

    def codes(self, *argv: str) -> set[str]:
        return codes(self.findings(*argv))

    def in_aws(self) -> set[str]:
        """The codes of what AWS alone says."""
        settings = self._settings()
        facts = Facts(aws=aws_facts(settings, 10.0), database=None)
        return {each.code for each in live_findings(settings, facts)}

    def in_database(self, seconds: float = 10.0) -> list[Finding]:
        """What PostgreSQL alone says."""
        settings = self._settings()
        facts = Facts(aws=None, database=database_facts(settings, seconds))
        return list(live_findings(settings, facts))

    def _settings(self) -> Settings:
        return load_settings(self._file, {})

    def client(self, service: Any) -> Any:
        return boto3.client(service, endpoint_url=self.endpoint, region_name="us-east-1")

    def queue_url(self, name: str) -> str:
        return str(self.client("sqs").get_queue_url(QueueName=name)["QueueUrl"])

    def set_queue(self, name: str, **attributes: str) -> None:
        self.client("sqs").set_queue_attributes(
            QueueUrl=self.queue_url(name), Attributes=attributes
        )

    def topic_arn(self) -> str:
        return str(self.client("sns").list_topics()["Topics"][0]["TopicArn"])

    def sql(self, *statements: str) -> None:
        with psycopg.connect(
            self.url, autocommit=True, options="-c search_path=outboxd"
        ) as connection:
            for statement in statements:
                connection.execute(statement.encode())


def codes(findings: Iterable[dict[str, Any]]) -> set[str]:
    return {finding["code"] for finding in findings}
