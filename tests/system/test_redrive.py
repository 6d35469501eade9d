"""Dead letters go back to the daemon once the reason for their death is gone."""

import json

import pytest

from outboxd.cli.main import main
from outboxd.demo.queues import Queues
from tests.system.scene import Scene, eventually, handler

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]

REGISTER = """
[[queues.work.handlers]]
event = "customer.seen"
handler = "customers:register"
name = "register"
inbox = "transaction"
"""


def dead_letters(scene: Scene) -> int:
    """Counted, not received: a receive would hide them."""
    return Queues(scene.settings).dead_letters()["work"].visible


def test_a_rejected_event_is_handled_once_when_it_is_redriven_after_the_fix(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.configure(REGISTER, handler("note", event="customer.seen"))
    with scene.database() as connection:
        connection.execute("CREATE TABLE public.customers (name text)")
    ids = scene.publish("customer.seen", name="Ada")
    command = ["--config", str(scene.configuration)]

    with scene.daemon():
        eventually(lambda: dead_letters(scene) == 1 and scene.messages_left() == 0)
        assert (scene.effects("register"), scene.effects("note")) == ([], ids)
        capsys.readouterr()
        assert main(["dlq", "list", "work", "--json", *command]) == 0
        (letter,) = json.loads(capsys.readouterr().out)["letters"]
        assert (letter["event_id"], letter["reason"]) == (ids[0], "rejected")
        assert "no such customer: Ada" in letter["error"]

        with scene.database() as connection:
            connection.execute("INSERT INTO public.customers VALUES ('Ada')")
        assert main(["dlq", "redrive", "work", "--yes", "--id", ids[0], *command]) == 0
        eventually(lambda: scene.effects("register") == ids and scene.messages_left() == 0)

    assert scene.effects("register") == ids
    assert scene.effects("note") == ids, "what had taken effect does not do so again"
    assert scene.letters() == []


def test_a_redrive_before_the_fix_ends_although_its_letters_come_back(scene: Scene) -> None:
    scene.configure(REGISTER)
    with scene.database() as connection:
        connection.execute("CREATE TABLE public.customers (name text)")
    scene.publish("customer.seen", 30, name="Ada")

    with scene.daemon():
        eventually(lambda: dead_letters(scene) == 30)
        redrive = ["dlq", "redrive", "work", "--yes", "--config", str(scene.configuration)]
        assert main(redrive) == 0
        eventually(lambda: dead_letters(scene) == 30 and scene.messages_left() == 0)

    assert scene.effects("register") == []
