"""Creates queues in SQS and corrects their attributes; never deletes anything."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from botocore.exceptions import ClientError

from outboxd.adapters.aws.explaining import Explaining
from outboxd.adapters.aws.outages import kind_of_code
from outboxd.adapters.sqs.client import sqs_client
from outboxd.core.errors import OutageKind
from outboxd.core.provisioning import REDRIVE_POLICY, Action, Step, WantedQueue
from outboxd.core.queue_policies import admitting
from outboxd.core.settings import AwsSettings

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient
    from types_boto3_sqs.literals import QueueAttributeNameType

_NOTHING_MORE: dict[str, str] = {}


class QueueProvisioner:
    """The queues of one account and region. Everything here raises Unavailable, with what was being
    done and what to do about it, when AWS does not do as it is asked."""

    def __init__(self, aws: AwsSettings) -> None:
        self._explained = Explaining("queue", aws.endpoint_url)
        with self._explained("setting up the AWS SDK"):
            self._client: SQSClient = sqs_client(aws, connections=1)

    def existing(self, names: Sequence[str]) -> dict[str, dict[str, str]]:
        """The attributes of those of the named queues that there are."""
        found = {name: self._attributes(name) for name in names}
        return {name: attributes for name, attributes in found.items() if attributes is not None}

    def carry_out(self, step: Step) -> None:
        """Do what a plan asks for one queue; a second time does no harm."""
        queue = step.queue
        match step.action:
            case Action.CREATE:
                with self._explained(f"creating queue {queue.name}"):
                    self._client.create_queue(
                        QueueName=queue.name,
                        Attributes=self._attributes_to_set(queue, queue.created_with),
                    )
            case Action.UPDATE:
                with self._explained(f"updating queue {queue.name}"):
                    self._client.set_queue_attributes(
                        QueueUrl=self._url(queue.name), Attributes=self._attributes_to_set(queue)
                    )
            case Action.UNCHANGED:
                pass

    def admit(self, name: str, arns: Mapping[str, Sequence[str]]) -> None:
        """Let these topics and rules send to a queue, by the statements of core.queue_policies; all
        else that its policy says stays."""
        with self._explained(f"updating the policy of queue {name}"):
            url = self._url(name)
            answer = self._client.get_queue_attributes(
                QueueUrl=url, AttributeNames=["Policy", "QueueArn"]
            )
            attributes = answer["Attributes"]
            policy = admitting(attributes.get("Policy"), attributes["QueueArn"], arns)
            self._client.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})

    def _attributes(self, name: str) -> dict[str, str] | None:
        with self._explained(f"reading queue {name}"):
            try:
                url = self._url(name)
            except ClientError as error:
                # By its code: not every server names the exception so that the SDK knows it.
                if kind_of_code(error.response["Error"]["Code"]) is OutageKind.MISSING:
                    return None
                raise
            answer = self._client.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
        return {str(key): value for key, value in answer.get("Attributes", {}).items()}

    def _attributes_to_set(
        self, queue: WantedQueue, more: Mapping[str, str] = _NOTHING_MORE
    ) -> "dict[QueueAttributeNameType, str]":
        attributes = {**more, **queue.attributes}
        if queue.dead_letter is not None:
            policy = {
                "deadLetterTargetArn": self.arn(queue.dead_letter),
                "maxReceiveCount": queue.max_receive_count,
            }
            attributes[REDRIVE_POLICY] = json.dumps(policy)
        return cast("dict[QueueAttributeNameType, str]", attributes)

    def arn(self, name: str) -> str:
        """The ARN of a queue that exists. Raises what the SDK raises."""
        answer = self._client.get_queue_attributes(
            QueueUrl=self._url(name), AttributeNames=["QueueArn"]
        )
        return answer["Attributes"]["QueueArn"]

    def _url(self, name: str) -> str:
        return self._client.get_queue_url(QueueName=name)["QueueUrl"]
