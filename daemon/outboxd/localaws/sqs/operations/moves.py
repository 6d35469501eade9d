"""The three operations on message move tasks."""

from outboxd.localaws.sqs import requests, responses
from outboxd.localaws.sqs.call import Call
from outboxd.localaws.sqs.errors import (
    invalid_parameter,
    missing_parameter,
    resource_not_found,
)
from outboxd.localaws.sqs.moves import KEPT_TASKS, MoveTask, Status
from outboxd.localaws.sqs.queue import Queue
from outboxd.localaws.sqs.validation import check_range

MAX_RATE = 500


def start_message_move_task(
    call: Call, request: requests.StartMessageMoveTask
) -> responses.TaskHandle:
    source = _source(call, request.source_arn)
    if not call.registry.sources_of(source):
        raise invalid_parameter("Source queue must be configured as a Dead Letter Queue.")
    rate = request.max_number_of_messages_per_second
    if rate is not None:
        check_range(rate, "MaxNumberOfMessagesPerSecond", 1, MAX_RATE)
    _check_destination(call, source, request.destination_arn)
    task = call.moves.start(source, request.destination_arn, rate, call.now)
    call.moves.run(call.now)
    return responses.TaskHandle(task.handle)


def list_message_move_tasks(
    call: Call, request: requests.ListMessageMoveTasks
) -> responses.MoveTaskList:
    source = _source(call, request.source_arn)
    limit = 1 if request.max_results is None else request.max_results
    check_range(limit, "MaxResults", 1, KEPT_TASKS)
    tasks = call.moves.recent(source.identity.arn, limit)
    return responses.MoveTaskList([_entry(task) for task in tasks])


def cancel_message_move_task(
    call: Call, request: requests.CancelMessageMoveTask
) -> responses.Cancelled:
    if not request.task_handle:
        raise missing_parameter("TaskHandle")
    return responses.Cancelled(call.moves.cancel(request.task_handle).moved)


def _source(call: Call, arn: str) -> Queue:
    if not arn:
        raise missing_parameter("SourceArn")
    source = call.registry.find_arn(arn)
    if source is None:
        raise resource_not_found(
            "The resource that you specified for the SourceArn parameter doesn't exist."
        )
    return source


def _check_destination(call: Call, source: Queue, arn: str | None) -> None:
    if arn is None:
        return
    destination = call.registry.find_arn(arn)
    if destination is None:
        raise resource_not_found(
            "The resource that you specified for the DestinationArn parameter doesn't exist."
        )
    if destination is source:
        raise invalid_parameter("Source queue arn and destination queue arn cannot be the same.")
    if destination.settings.fifo != source.settings.fifo:
        raise invalid_parameter("Source queue and destination queue must be of the same type.")


def _entry(task: MoveTask) -> responses.MoveTaskEntry:
    return responses.MoveTaskEntry(
        task_handle=task.handle if task.status is Status.RUNNING else None,
        status=task.status.value,
        source_arn=task.source.identity.arn,
        destination_arn=task.destination_arn,
        rate=task.rate,
        moved=task.moved,
        to_move=task.to_move,
        failure_reason=task.failure,
        started_timestamp=int(task.started_at * 1000),
    )
