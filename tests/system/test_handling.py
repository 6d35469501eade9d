import pytest

from tests.system.scene import Scene, encoded, eventually, handler

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]


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
