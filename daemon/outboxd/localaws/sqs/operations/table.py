"""Every action of SQS: how its request is read and what it does."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import msgspec

from outboxd.localaws.sqs import requests
from outboxd.localaws.sqs.call import Call, Result
from outboxd.localaws.sqs.operations import access, moves, queues, receive, send, settle

Request = TypeVar("Request", bound=msgspec.Struct)


class Operation(NamedTuple):
    decode: Callable[[bytes], msgspec.Struct]
    act: Callable[[Call, Any], Result]


def _operation(request: type[Request], act: Callable[[Call, Request], Result]) -> Operation:
    return Operation(msgspec.json.Decoder(request).decode, act)


OPERATIONS = {
    "CreateQueue": _operation(requests.CreateQueue, queues.create_queue),
    "DeleteQueue": _operation(requests.QueueOnly, queues.delete_queue),
    "GetQueueUrl": _operation(requests.GetQueueUrl, queues.get_queue_url),
    "ListQueues": _operation(requests.ListQueues, queues.list_queues),
    "ListDeadLetterSourceQueues": _operation(
        requests.ListDeadLetterSourceQueues, queues.list_dead_letter_source_queues
    ),
    "GetQueueAttributes": _operation(requests.GetQueueAttributes, queues.get_queue_attributes),
    "SetQueueAttributes": _operation(requests.SetQueueAttributes, queues.set_queue_attributes),
    "PurgeQueue": _operation(requests.QueueOnly, queues.purge_queue),
    "TagQueue": _operation(requests.TagQueue, access.tag_queue),
    "UntagQueue": _operation(requests.UntagQueue, access.untag_queue),
    "ListQueueTags": _operation(requests.QueueOnly, access.list_queue_tags),
    "AddPermission": _operation(requests.AddPermission, access.add_permission),
    "RemovePermission": _operation(requests.RemovePermission, access.remove_permission),
    "SendMessage": _operation(requests.SendMessage, send.send_message),
    "SendMessageBatch": _operation(requests.SendMessageBatch, send.send_message_batch),
    "ReceiveMessage": _operation(requests.ReceiveMessage, receive.receive_message),
    "DeleteMessage": _operation(requests.DeleteMessage, settle.delete_message),
    "DeleteMessageBatch": _operation(requests.DeleteMessageBatch, settle.delete_message_batch),
    "ChangeMessageVisibility": _operation(
        requests.ChangeMessageVisibility, settle.change_message_visibility
    ),
    "ChangeMessageVisibilityBatch": _operation(
        requests.ChangeMessageVisibilityBatch, settle.change_message_visibility_batch
    ),
    "StartMessageMoveTask": _operation(
        requests.StartMessageMoveTask, moves.start_message_move_task
    ),
    "ListMessageMoveTasks": _operation(
        requests.ListMessageMoveTasks, moves.list_message_move_tasks
    ),
    "CancelMessageMoveTask": _operation(
        requests.CancelMessageMoveTask, moves.cancel_message_move_task
    ),
}
