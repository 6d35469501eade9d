import math

import pytest

from outboxd.core.children import Kind, Slot, children_of
from outboxd.core.errors import SettingsError
from outboxd.core.settings import HandlerSettings, QueueSettings, RelaySettings, Settings

QUICK = HandlerSettings(event="*", handler="a:b", name="quick", timeout_seconds=5)
SLOW = HandlerSettings(event="*", handler="a:b", name="slow", timeout_seconds=100)
SETTINGS = Settings(
    relay=RelaySettings(),
    queues={
        "orders": QueueSettings(processes=2, handlers=(QUICK,)),
        "mails": QueueSettings(handlers=(SLOW,)),
        "elsewhere": QueueSettings(),
    },
)


def names(only: str | None = None) -> list[str]:
    return [spec.name for spec in children_of(SETTINGS, only)]


def test_the_whole_daemon_has_every_child() -> None:
    assert names() == [
        "extender",
        "relay",
        "consumer:orders/1",
        "consumer:orders/2",
        "consumer:mails/1",
    ]


def test_a_relay_alone_needs_no_extender() -> None:
    assert names("relay") == ["relay"]


def test_a_pool_alone_brings_its_extender() -> None:
    assert names("consumer:mails") == ["extender", "consumer:mails/1"]


def test_a_queue_without_handlers_has_no_pool() -> None:
    with pytest.raises(SettingsError, match="no such part"):
        names("consumer:elsewhere")


def test_an_unknown_part_is_refused_with_the_parts_there_are() -> None:
    with pytest.raises(SettingsError, match=r"--only consumer:mail: no such part.*consumer:mails"):
        names("consumer:mail")


def test_an_empty_configuration_has_nothing_to_run() -> None:
    with pytest.raises(SettingsError, match="nothing to run"):
        children_of(Settings())


def test_a_pool_may_be_silent_longer_than_its_longest_handler() -> None:
    deadlines = {spec.name: spec.heartbeat_deadline_seconds for spec in children_of(SETTINGS)}

    assert deadlines == {
        "extender": 10,
        "relay": 10,
        "consumer:orders/1": 30,
        "consumer:orders/2": 30,
        "consumer:mails/1": 115,
    }


def test_a_call_is_stuck_after_twice_the_longest_timeout_and_a_minute() -> None:
    limits = {spec.name: spec.call_limit_seconds for spec in children_of(SETTINGS)}

    assert limits == {
        "extender": math.inf,  # their calls to AWS end by timeouts of the SDK
        "relay": math.inf,
        "consumer:orders/1": 70,
        "consumer:orders/2": 70,
        "consumer:mails/1": 260,
    }


@pytest.mark.parametrize("timeout_seconds", [0.1, 15, 30, 43_200])
def test_one_pause_of_the_machine_does_not_make_a_rightful_call_stuck(
    timeout_seconds: float,
) -> None:
    handler = HandlerSettings(event="*", handler="a:b", name="h", timeout_seconds=timeout_seconds)
    settings = Settings(queues={"orders": QueueSettings(handlers=(handler,))})

    _, pool = children_of(settings)

    assert timeout_seconds + pool.heartbeat_deadline_seconds < pool.call_limit_seconds


@pytest.mark.parametrize("name", ["relay", "extender", "consumer:a-b/12"])
def test_a_slot_is_found_by_its_name(name: str) -> None:
    assert Slot.parse(name).name == name


def test_a_slot_knows_its_queue() -> None:
    assert Slot.parse("consumer:orders/2") == Slot(Kind.CONSUMER, "orders", 2)


def test_a_process_that_is_replaced_gets_the_time_of_its_longest_handler() -> None:
    patience = {spec.name: spec.drain_seconds for spec in children_of(SETTINGS)}

    assert patience == {
        "extender": 1,
        "relay": 20,
        "consumer:orders/1": 20,
        "consumer:orders/2": 20,
        "consumer:mails/1": 115,
    }
