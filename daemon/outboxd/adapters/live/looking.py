"""All facts of a configuration."""

from outboxd.adapters.live.aws import aws_facts
from outboxd.adapters.live.postgres import database_facts
from outboxd.core.live.facts import Facts
from outboxd.core.settings import Settings


def live_facts(settings: Settings, seconds: float) -> Facts:
    """What AWS and PostgreSQL say. No question takes longer than `seconds`."""
    return Facts(aws=aws_facts(settings, seconds), database=database_facts(settings, seconds))
