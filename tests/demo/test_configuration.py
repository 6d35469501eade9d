"""The files of config/ and the one that the demo makes of them."""

import os
from pathlib import Path

import pytest

from outboxd.adapters.configuration import load_settings
from outboxd.core.errors import SettingsError
from outboxd.core.settings import Settings
from outboxd.demo.configuration import Addresses, Configuration, render
from outboxd.demo.options import DemoOptions
from outboxd.resources import project_directory
from tests.shop.production import PRODUCTION

ADDRESSES = Addresses(
    smtp_host="127.0.0.1",
    smtp_port=2525,
    partners="http://127.0.0.1:4001",
    s3_and_ses="http://127.0.0.1:4002",
)

DSN = "host='/tmp/a folder' port=5432 user=\"postgres\" dbname=\\shop"


def settings_of(folder: Path, options: DemoOptions) -> Settings:
    configuration = Configuration(folder, DSN, "http://127.0.0.1:4566", ADDRESSES, options)
    return load_settings(configuration.path, os.environ)


def test_the_demo_runs_on_what_it_started(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, DemoOptions())

    assert settings.database is not None
    assert settings.database.url == DSN
    assert settings.aws.endpoint_url == "http://127.0.0.1:4566"
    assert settings.import_path == (str(project_directory()),)
    assert settings.http.port == 0


def test_the_file_tells_the_port_once_it_is_known(tmp_path: Path) -> None:
    options = DemoOptions()
    configuration = Configuration(tmp_path, DSN, "http://127.0.0.1:4566", ADDRESSES, options)

    configuration.write(4711)

    assert load_settings(configuration.path, {}).http.port == 4711


def test_queues_on_a_service_of_others_have_names_of_their_own(tmp_path: Path) -> None:
    options = DemoOptions(aws_endpoint="http://127.0.0.1:4566")
    first, second = settings_of(tmp_path, options), settings_of(tmp_path, options)

    assert first.sqs_queue_name("jobs").endswith("-jobs")
    assert first.sqs_queue_name("jobs") != second.sqs_queue_name("jobs")
    assert first.destinations.eventbridge["shop"].bus_name != "shop"
    assert first.dead_letter_name("jobs").startswith(first.sqs_queue_name("jobs"))


def test_a_value_that_is_missing_is_told() -> None:
    with pytest.raises(SettingsError, match="OUTBOXD_DEMO_DATABASE_URL"):
        render('url = "${OUTBOXD_DEMO_DATABASE_URL}"', {})


def test_the_handlers_know_where_everybody_is(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, DemoOptions())

    options = {
        handler.name: handler.options
        for queue in settings.queues.values()
        for handler in queue.handlers
    }
    assert options["shipping.request_pickup"]["base_url"] == "http://127.0.0.1:4001/courier"
    assert options["invoice.generate"]["endpoint_url"] == "http://127.0.0.1:4002"
    assert options["notification.confirmation_email"]["port"] == "2525"


def test_the_demo_runs_every_handler_of_the_production_configuration(tmp_path: Path) -> None:
    """And sends every event on the same ways: it is what users copy."""
    production = load_settings(project_directory() / "config" / "shop.toml", PRODUCTION)
    demo = settings_of(tmp_path, DemoOptions())

    assert production.import_path == (str(project_directory()),)
    assert _handlers(demo) == _handlers(production)
    assert demo.relay is not None
    assert production.relay is not None
    assert demo.relay.routes == production.relay.routes
    assert (
        demo.destinations.eventbridge["shop"].rules
        == production.destinations.eventbridge["shop"].rules
    )


def _handlers(settings: Settings) -> set[tuple[str, str, str, str, str]]:
    return {
        (queue, each.event, each.handler, each.name, each.inbox)
        for queue, table in settings.queues.items()
        for each in table.handlers
    }
