"""The queues of a configuration, and the buses that lead to them: created, counted by the service
that holds them, deleted."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from outboxd.adapters.aws.outages import AWS_ERRORS, outage
from outboxd.adapters.sqs.client import sqs_client
from outboxd.adapters.sqs.provisioning import QueueProvisioner
from outboxd.core.errors import OutageKind, Unavailable
from outboxd.core.provisioning import plan, wanted_queues
from outboxd.core.settings import Settings
from outboxd.demo.counting import QueueDepth

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient


class Queues:
    """All queues of one run, by the names that the configuration uses.

    Every method raises Unavailable when their service does not do as it is asked.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._client: SQSClient = sqs_client(settings.aws, connections=1)
        self._main = {name: settings.sqs_queue_name(name) for name in settings.queues}
        self._dead = {name: settings.dead_letter_name(name) for name in settings.queues}
        self._urls: dict[str, str] = {}

    def create(self) -> None:
        """Create them as `outboxd provision` does where there are none yet."""
        provisioner = QueueProvisioner(self._settings.aws)
        for step in plan(wanted_queues(self._settings), existing={}):
            provisioner.carry_out(step)

    def depths(self) -> dict[str, QueueDepth]:
        """What each queue holds: waiting, being worked on, hidden for later."""
        return {name: self._depth(called) for name, called in self._main.items()}

    def dead_letters(self) -> dict[str, QueueDepth]:
        """What the dead-letter queue of each queue holds."""
        return {name: self._depth(called) for name, called in self._dead.items()}

    def delete(self) -> None:
        """Delete all of them, for a service that is not ours and stays."""
        for called in dict.fromkeys([*self._main.values(), *self._dead.values()]):
            try:
                with _explained(f"deleting queue {called}"):
                    self._client.delete_queue(QueueUrl=self._url(called))
            except Unavailable as error:
                if error.kind is not OutageKind.MISSING:
                    raise

    def _depth(self, called: str) -> QueueDepth:
        with _explained(f"counting queue {called}"):
            answer = self._client.get_queue_attributes(
                QueueUrl=self._url(called),
                AttributeNames=[
                    "ApproximateNumberOfMessages",
                    "ApproximateNumberOfMessagesNotVisible",
                    "ApproximateNumberOfMessagesDelayed",
                ],
            )
        attributes = answer["Attributes"]
        return QueueDepth(
            visible=int(attributes["ApproximateNumberOfMessages"]),
            in_flight=int(attributes["ApproximateNumberOfMessagesNotVisible"]),
            delayed=int(attributes.get("ApproximateNumberOfMessagesDelayed", "0")),
        )

    def _url(self, called: str) -> str:
        if called not in self._urls:
            self._urls[called] = self._client.get_queue_url(QueueName=called)["QueueUrl"]
        return self._urls[called]


@contextmanager
def _explained(doing: str) -> Iterator[None]:
    try:
        yield
    except AWS_ERRORS as error:
        raise outage(error, doing) from error
