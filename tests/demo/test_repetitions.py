"""What explains that a call was made again."""

import os
from pathlib import Path

import pytest

from outboxd.adapters.configuration import load_settings
from outboxd.core.settings import Settings
from outboxd.demo.configuration import Configuration
from outboxd.demo.flows import Flow
from outboxd.demo.options import DemoOptions
from outboxd.demo.partners.book import Service
from outboxd.demo.repetitions import QUEUES, explain
from tests.demo.test_configuration import ADDRESSES

NONE_LOST = dict.fromkeys(Service, 0)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    endpoint = "http://127.0.0.1:4566"
    configuration = Configuration(tmp_path, "dbname=shop", endpoint, ADDRESSES, DemoOptions())
    return load_settings(configuration.path, os.environ)


def explained(
    settings: Settings, kills: dict[str, int], answers_lost: dict[Service, int] = NONE_LOST
) -> dict[str, int]:
    flows = {name: Flow(1, 1) for name in (*QUEUES, "orders_paid")}
    told = explain(flows, settings=settings, kills=kills, answers_lost=answers_lost)
    return {name: flow.explained for name, flow in told.items() if flow.explained}


def test_a_kill_explains_what_its_own_pool_had_in_hand(settings: Settings) -> None:
    assert explained(settings, {"consumer:shipping-events/1": 2, "relay": 9, "extender": 3}) == {
        "shipments_requested": 20
    }


def test_a_lost_answer_explains_one_call_of_its_own_service(settings: Settings) -> None:
    assert explained(settings, {}, {**NONE_LOST, Service.PUSH: 3}) == {"push_sent": 3}


def test_both_add_up(settings: Settings) -> None:
    kills = {"consumer:notification-events/1": 1}

    assert explained(settings, kills, {**NONE_LOST, Service.WHATSAPP: 4}) == {
        "emails_sent": 10,
        "whatsapp_sent": 14,
        "push_sent": 10,
    }


def test_nothing_explains_what_happens_in_the_database(settings: Settings) -> None:
    assert "orders_paid" not in explained(settings, {"consumer:payment-events/1": 5})


def test_every_flow_that_may_repeat_has_a_queue_that_there_is(settings: Settings) -> None:
    assert set(QUEUES.values()) <= settings.queues.keys()
