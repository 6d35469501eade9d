"""Queues themselves: create, find, list, configure, empty and delete."""

from outboxd.localaws.sqs import requests, responses
from outboxd.localaws.sqs.arns import queue_arn
from outboxd.localaws.sqs.attributes import COUNTS, KNOWN, changed, created, rendered
from outboxd.localaws.sqs.call import Call
from outboxd.localaws.sqs.errors import (
    invalid_parameter_value,
    missing_parameter,
    unknown_attribute,
)
from outboxd.localaws.sqs.operations.access import check_tags
from outboxd.localaws.sqs.operations.paging import page
from outboxd.localaws.sqs.queue import Queue
from outboxd.localaws.sqs.settings import Settings
from outboxd.localaws.sqs.validation import check_queue_name


def create_queue(call: Call, request: requests.CreateQueue) -> responses.QueueUrl:
    name = request.queue_name
    if not name:
        raise missing_parameter("QueueName")
    check_queue_name(name, fifo=request.attributes.get("FifoQueue", "").lower() == "true")
    queue = call.registry.existing(call.region, name, request.attributes)
    if queue is None:
        settings = created(request.attributes)
        _check_dead_letter_queue(call, settings, queue_arn(call.region, name))
        check_tags(request.tags)
        queue = call.registry.create(call.region, name, settings, call.now)
        queue.tags.update(request.tags)
    return responses.QueueUrl(call.url(queue))


def delete_queue(call: Call, request: requests.QueueOnly) -> None:
    call.registry.delete(call.queue(request.queue_url), call.now)


def get_queue_url(call: Call, request: requests.GetQueueUrl) -> responses.QueueUrl:
    if not request.queue_name:
        raise missing_parameter("QueueName")
    return responses.QueueUrl(call.url(call.registry.get(call.region, request.queue_name)))


def list_queues(call: Call, request: requests.ListQueues) -> responses.QueueUrls:
    queues = [
        queue
        for queue in call.registry.in_region(call.region)
        if queue.identity.name.startswith(request.queue_name_prefix)
    ]
    shown, token = page(queues, _name, request.max_results, request.next_token)
    return responses.QueueUrls([call.url(queue) for queue in shown], token)


def list_dead_letter_source_queues(
    call: Call, request: requests.ListDeadLetterSourceQueues
) -> responses.SourceQueueUrls:
    sources = call.registry.sources_of(call.queue(request.queue_url))
    shown, token = page(sources, _name, request.max_results, request.next_token)
    return responses.SourceQueueUrls([call.url(queue) for queue in shown], token)


def get_queue_attributes(
    call: Call, request: requests.GetQueueAttributes
) -> responses.QueueAttributes:
    queue = call.queue(request.queue_url)
    names = request.attribute_names
    for name in names:
        if name != "All" and name not in KNOWN:
            raise unknown_attribute(name)
    if not names:
        return responses.QueueAttributes()
    texts = _described(queue, call.now)
    if "All" not in names:
        texts = {name: texts[name] for name in names if name in texts}
    return responses.QueueAttributes(texts)


def set_queue_attributes(call: Call, request: requests.SetQueueAttributes) -> None:
    queue = call.queue(request.queue_url)
    settings = changed(queue.settings, request.attributes)
    if "RedrivePolicy" in request.attributes:
        _check_dead_letter_queue(call, settings, queue.identity.arn)
    # Messages whose time was up under the old settings must not be judged by the new ones.
    queue.catch_up(call.now)
    queue.settings = settings
    queue.modified_at = call.now
    queue.catch_up(call.now)
    queue.on_change()


def purge_queue(call: Call, request: requests.QueueOnly) -> None:
    call.queue(request.queue_url).purge(call.now)


def _name(queue: Queue) -> str:
    return queue.identity.name


def _described(queue: Queue, now: float) -> dict[str, str]:
    texts = rendered(queue.settings)
    texts["QueueArn"] = queue.identity.arn
    texts["CreatedTimestamp"] = str(int(queue.created_at))
    texts["LastModifiedTimestamp"] = str(int(queue.modified_at))
    texts.update(zip(COUNTS, map(str, queue.depth(now)), strict=True))
    return texts


def _check_dead_letter_queue(call: Call, settings: Settings, source_arn: str) -> None:
    """The target must exist, be of the same type, and allow this source. Raises AwsError."""
    redrive = settings.redrive
    if redrive is None:
        return
    target = call.registry.find_arn(redrive.target_arn)
    problem = None
    if target is None or target.identity.region != call.region:
        problem = "Dead letter target does not exist."
    elif target.settings.fifo != settings.fifo:
        problem = "Dead-letter queue must be same type of queue as the source."
    elif (allow := target.settings.redrive_allow) is not None and not allow.allows(source_arn):
        problem = "The RedriveAllowPolicy of the dead-letter queue does not allow this source."
    if problem is not None:
        raise invalid_parameter_value(redrive.rendered(), "RedrivePolicy", problem)
