"""Redrive: when a message moves to the dead-letter queue, and as what."""

import json

import pytest

from outboxd.localaws.errors import AwsError
from outboxd.localaws.sqs import requests
from outboxd.localaws.sqs.operations import queues
from outboxd.localaws.sqs.queue import Queue
from tests.localaws.support import Engine, redrive_policy


def set_attributes(engine: Engine, queue: Queue, **attributes: str) -> None:
    request = requests.SetQueueAttributes(queue.identity.name, attributes)
    queues.set_queue_attributes(engine.call, request)


def test_a_message_received_as_often_as_allowed_moves_when_its_lease_ends(engine: Engine) -> None:
    queue, dead = engine.queue_with_dead_letters(max_receive_count=2)
    engine.send(queue, "poison")
    for _ in range(2):
        engine.receive_one(queue)
        engine.wait(30)

    assert engine.bodies(queue) == []
    assert engine.bodies(dead) == ["poison"]


def test_it_moves_at_once_when_the_last_receiver_releases_it(engine: Engine) -> None:
    queue, dead = engine.queue_with_dead_letters(max_receive_count=1)
    engine.send(queue)

    engine.hide(queue, engine.receive_one(queue), 0)

    assert (engine.depth(queue), engine.depth(dead)) == ((0, 0, 0), (1, 0, 0))


def test_it_moves_instead_of_being_received_when_the_limit_was_lowered(engine: Engine) -> None:
    queue, dead = engine.queue_with_dead_letters(max_receive_count=5)
    engine.send_all(queue, "poison", "innocent")
    for _ in range(2):
        engine.hide(queue, engine.receive_one(queue), 0)
        engine.hide(queue, engine.receive_one(queue), 0)
    engine.send(queue, "new")

    set_attributes(engine, queue, RedrivePolicy=redrive_policy(dead, 2))

    assert engine.bodies(queue) == ["new"]
    assert engine.bodies(dead) == ["poison", "innocent"]


def test_a_letter_keeps_its_identity_and_goes_on_counting(engine: Engine) -> None:
    queue, dead = engine.queue_with_dead_letters(max_receive_count=2)
    sent = engine.send(queue, message_group_id="tenant")
    for _ in range(2):
        engine.hide(queue, engine.receive_one(queue), 0)
    engine.wait(5)

    letter = engine.receive_one(dead).message

    assert letter.id == sent.message_id
    assert letter.receives == 3
    assert letter.dead_letter_source == queue.identity.arn
    assert letter.group == "tenant"
    assert letter.sent_at == engine.now - 5


def test_the_handle_of_a_message_that_moved_is_of_no_use(engine: Engine) -> None:
    queue, dead = engine.queue_with_dead_letters(max_receive_count=1)
    engine.send(queue)
    delivery = engine.receive_one(queue)
    engine.wait(30)

    engine.delete(queue, delivery)
    with pytest.raises(AwsError):
        engine.hide(queue, delivery, 10)

    assert engine.depth(dead) == (1, 0, 0)


def test_letters_pass_through_a_chain_with_a_count_for_each_queue(engine: Engine) -> None:
    last = engine.queue("last")
    middle = engine.queue("middle", RedrivePolicy=redrive_policy(last, 2))
    first = engine.queue("first", RedrivePolicy=redrive_policy(middle, 3))
    engine.send(first)

    for queue, receives in ((first, 3), (middle, 2)):
        for _ in range(receives):
            engine.hide(queue, engine.receive_one(queue), 0)

    assert engine.receive_one(last).message.receives == 6


def test_a_standard_letter_keeps_its_age(engine: Engine) -> None:
    queue, dead = engine.queue_with_dead_letters(max_receive_count=1)
    set_attributes(engine, dead, MessageRetentionPeriod="100")
    engine.send(queue)
    engine.wait(90)
    engine.hide(queue, engine.receive_one(queue), 0)
    assert engine.depth(dead) == (1, 0, 0)

    engine.wait(10)

    assert engine.depth(dead) == (0, 0, 0)


def test_a_fifo_letter_starts_its_age_anew_and_frees_its_group(engine: Engine) -> None:
    queue, dead = engine.queue_with_dead_letters(max_receive_count=1, suffix=".fifo")
    set_attributes(engine, dead, MessageRetentionPeriod="100")
    engine.send_all(queue, "a1", "a2")
    engine.wait(90)
    engine.hide(queue, engine.receive_one(queue), 0)

    assert engine.bodies(queue) == ["a2"]
    engine.wait(99)
    assert engine.bodies(dead) == ["a1"]


def test_without_its_dead_letter_queue_a_message_stays(engine: Engine) -> None:
    queue, dead = engine.queue_with_dead_letters(max_receive_count=1)
    engine.send(queue)
    engine.registry.delete(dead, engine.now)

    for _ in range(3):
        engine.hide(queue, engine.receive_one(queue), 0)

    assert engine.depth(queue) == (1, 0, 0)


def test_a_deleted_queue_sends_no_letters(engine: Engine) -> None:
    queue, dead = engine.queue_with_dead_letters(max_receive_count=1)
    engine.send(queue)
    engine.receive_one(queue)

    engine.registry.delete(queue, engine.now)
    engine.wait(30)
    queue.catch_up(engine.now)

    assert engine.depth(dead) == (0, 0, 0)


def test_a_queue_may_be_its_own_dead_letter_queue(engine: Engine) -> None:
    queue = engine.queue()
    set_attributes(engine, queue, RedrivePolicy=redrive_policy(queue, 1))
    engine.send(queue)

    engine.hide(queue, engine.receive_one(queue), 0)

    assert engine.receive_one(queue).message.receives == 2


def test_the_sources_of_a_dead_letter_queue_are_known(engine: Engine) -> None:
    queue, dead = engine.queue_with_dead_letters(max_receive_count=1)
    engine.queue("unrelated")

    assert engine.registry.sources_of(dead) == [queue]


ARN = "arn:aws:sqs:us-east-1:000000000000"


@pytest.mark.parametrize(
    "policy",
    [
        "no json",
        "[]",
        '{"maxReceiveCount": 3}',
        f'{{"deadLetterTargetArn": "{ARN}:dead"}}',
        f'{{"deadLetterTargetArn": "{ARN}:dead", "maxReceiveCount": 0}}',
        f'{{"deadLetterTargetArn": "{ARN}:dead", "maxReceiveCount": 1001}}',
        f'{{"deadLetterTargetArn": "{ARN}:dead", "maxReceiveCount": "x"}}',
        f'{{"deadLetterTargetArn": "{ARN}:dead", "maxReceiveCount": true}}',
        f'{{"deadLetterTargetArn": "{ARN}:none", "maxReceiveCount": 3}}',
        f'{{"deadLetterTargetArn": "{ARN}:d.fifo", "maxReceiveCount": 3}}',
        '{"deadLetterTargetArn": "arn:aws:sqs:eu-west-1:000000000000:dead", "maxReceiveCount": 3}',
        '{"deadLetterTargetArn": "dead", "maxReceiveCount": 3}',
    ],
)
def test_a_redrive_policy_that_cannot_work_is_refused(engine: Engine, policy: str) -> None:
    engine.queue("dead")
    engine.queue("d.fifo")

    with pytest.raises(AwsError) as refusal:
        engine.queue(RedrivePolicy=policy)

    assert refusal.value.code == "InvalidParameterValue"


@pytest.mark.parametrize(
    ("allow", "allowed"),
    [
        ({"redrivePermission": "allowAll"}, True),
        ({"redrivePermission": "denyAll"}, False),
        (
            {
                "redrivePermission": "byQueue",
                "sourceQueueArns": ["arn:aws:sqs:us-east-1:000000000000:orders"],
            },
            True,
        ),
        (
            {
                "redrivePermission": "byQueue",
                "sourceQueueArns": ["arn:aws:sqs:us-east-1:000000000000:others"],
            },
            False,
        ),
    ],
)
def test_a_dead_letter_queue_says_whose_letters_it_takes(
    engine: Engine, allow: dict[str, object], allowed: bool
) -> None:
    dead = engine.queue("dead", RedriveAllowPolicy=json.dumps(allow))
    if allowed:
        engine.queue(RedrivePolicy=redrive_policy(dead, 3))
    else:
        with pytest.raises(AwsError, match="does not allow this source"):
            engine.queue(RedrivePolicy=redrive_policy(dead, 3))


@pytest.mark.parametrize(
    "policy",
    [
        "no json",
        '{"redrivePermission": "perhaps"}',
        '{"redrivePermission": "byQueue"}',
        '{"redrivePermission": "denyAll", "sourceQueueArns": ["a"]}',
        '{"redrivePermission": "byQueue", "sourceQueueArns": "a"}',
        json.dumps({"redrivePermission": "byQueue", "sourceQueueArns": ["a"] * 11}),
    ],
)
def test_a_redrive_allow_policy_that_makes_no_sense_is_refused(engine: Engine, policy: str) -> None:
    with pytest.raises(AwsError) as refusal:
        engine.queue(RedriveAllowPolicy=policy)

    assert refusal.value.code == "InvalidParameterValue"
