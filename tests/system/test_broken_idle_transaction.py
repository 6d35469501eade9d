import pytest

from tests.system.scene import Scene, eventually, handler

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]


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
