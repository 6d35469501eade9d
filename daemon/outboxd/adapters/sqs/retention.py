"""How long SQS keeps the messages of a queue, and the dead letters of it, as they are configured
there now."""

from typing import TYPE_CHECKING, Literal

from anyio import to_thread

from outboxd.adapters.aws.outages import AWS_ERRORS, outage
from outboxd.adapters.sqs.client import sqs_client
from outboxd.core.settings import Settings

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient


class SqsQueueLife:
    """Keeps `ports.inbox_upkeep.QueueLife`; asked once an hour, so each time with a new client."""

    def __init__(self, settings: Settings, queue: str) -> None:
        """`queue` is the name in the configuration."""
        self._settings = settings
        self._names = (settings.sqs_queue_name(queue), settings.dead_letter_name(queue))

    async def lasting_seconds(self) -> float:
        return await to_thread.run_sync(self._ask)

    def _ask(self) -> float:
        try:
            client = sqs_client(self._settings.aws, connections=1)
            try:
                return float(sum(_retention(client, name) for name in self._names))
            finally:
                client.close()
        except AWS_ERRORS as error:
            raise outage(error, "reading the retention of queues") from error


def _retention(client: "SQSClient", name: str) -> int:
    """Seconds. SQS always tells it."""
    url = client.get_queue_url(QueueName=name)["QueueUrl"]
    attribute: Literal["MessageRetentionPeriod"] = "MessageRetentionPeriod"
    answer = client.get_queue_attributes(QueueUrl=url, AttributeNames=[attribute])
    return int(answer["Attributes"][attribute])
