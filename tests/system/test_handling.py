from contextlib import closing
from typing import Any

import pytest

from outboxd.adapters.sqs.client import sqs_client
from tests.system.scene import Scene, encoded, eventually, handler

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]

MOST_BYTES = 1024 * 1024


def test_poison_beside_good_messages_is_dead_lettered_with_its_reason(scene: Scene) -> None:
    scene.configure(handler("note"), handler("reject", inbox="off"), handler("fail", inbox="off"))
    scene.send('{"this is not": "an event"')
    scene.send(encoded(id="1", type="nobody.knows", payload={}))
    scene.publish("reject.wanted")
    scene.publish("fail.wanted")
    good = scene.publish("note.wanted", 100)

    with scene.daemon():
        eventually(lambda: len(scene.effects("note")) >= 100 and scene.messages_left() == 0)

    assert sorted(scene.effects("note")) == sorted(good)
    letters = {letter["reason"]: letter for letter in scene.letters()}
    assert set(letters) == {"malformed", "unknown_type", "rejected", "max_attempts"}
    assert letters["malformed"]["body"] == '{"this is not": "an event"'
    assert letters["unknown_type"]["event_type"] == "nobody.knows"
    assert "no such customer: 42" in letters["rejected"]["error"]
    assert "attempt 3 always fails" in letters["max_attempts"]["error"]


@pytest.mark.parametrize(("function", "seconds"), [("sleep", 20), ("hold_the_gil", 15)])
def test_a_handler_longer_than_the_visibility_timeout_runs_once(
    scene: Scene, function: str, seconds: int
) -> None:
    scene.configure(handler(function), visibility=5, concurrency=2)
    ids = scene.publish(f"{function}.wanted", seconds=seconds)

    with scene.daemon():
        eventually(lambda: scene.effects(function) == ids, seconds=seconds + 20)
        eventually(lambda: scene.messages_left() == 0)
        assert scene.metric("outboxd_messages_received_total") == 1, "it was received once"
        assert scene.metric("outboxd_visibility_extensions_total", result="ok") >= 2

    assert scene.effects(function) == ids


def test_a_handler_whose_idle_transaction_the_server_ended_is_out_of_attempts_some_time(
    scene: Scene,
) -> None:
    """PostgreSQL says so only at the COMMIT, when the handler did not use `tx` any more."""
    scene.configure(handler("sleep"), visibility=30)
    with scene.database() as connection:
        name = connection.info.dbname
        connection.execute(f"ALTER DATABASE {name} SET idle_in_transaction_session_timeout = 500")
    scene.publish("sleep.wanted", seconds=1.5)

    with scene.daemon():
        eventually(lambda: scene.messages_left() == 0, seconds=40)
        letters = scene.letters()

    assert [letter["reason"] for letter in letters] == ["max_attempts"]
    assert "idle-in-transaction" in letters[0]["error"]


def test_attributes_stay_when_the_body_leaves_no_room_for_a_reason_anyway(scene: Scene) -> None:
    scene.configure(handler("note"))
    attributes: Any = {"tenant": {"DataType": "String", "StringValue": "ada"}}
    client = sqs_client(scene.settings.aws, connections=1)
    with closing(client):
        client.send_message(
            QueueUrl=client.get_queue_url(QueueName="work")["QueueUrl"],
            MessageBody="x" * (MOST_BYTES - 100),
            MessageAttributes=attributes,
        )
        with scene.daemon():
            eventually(lambda: scene.messages_left() == 0)
        letters = client.receive_message(
            QueueUrl=client.get_queue_url(QueueName="work-dlq")["QueueUrl"],
            MessageAttributeNames=["All"],
        )["Messages"]

    assert letters[0].get("MessageAttributes") == attributes
