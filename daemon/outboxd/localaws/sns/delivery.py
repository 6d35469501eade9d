"""From a topic to the queues that are subscribed to it."""

import logging

from outboxd.localaws.errors import AwsError
from outboxd.localaws.sns.call import Call
from outboxd.localaws.sns.notification import Notice, parcel
from outboxd.localaws.sns.subscription import Subscription

log = logging.getLogger(__name__)


def fan_out(call: Call, notice: Notice) -> None:
    """Deliver to every subscription whose filter policy lets the message through, before the
    publish is answered: AWS does it soon after."""
    for subscription in call.registry.subscriptions_of(notice.topic):
        policy = subscription.settings.filter_policy
        if policy is None or policy.accepts(notice.text, notice.attributes):
            _deliver(call, notice, subscription)


def _deliver(call: Call, notice: Notice, subscription: Subscription) -> None:
    """What the queue does not take goes to the subscription's dead-letter queue, or is lost."""
    for queue_arn in (subscription.endpoint, subscription.settings.dead_letter_arn):
        if queue_arn is None:
            return
        try:
            message = parcel(notice, subscription, queue_arn, call.base_url)
            call.inbox.put(queue_arn, message, call.now)
        except AwsError as refusal:
            _not_delivered(subscription, queue_arn, refusal)
        else:
            return


def _not_delivered(subscription: Subscription, queue: str, refusal: AwsError) -> None:
    log.warning(
        "SNS could not deliver a message",
        extra={"subscription": subscription.arn, "queue": queue, "reason": refusal.message},
    )
