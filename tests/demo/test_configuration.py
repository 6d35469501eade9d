"""The files of config/ and the one that the demo makes of them."""

import os
from pathlib import Path

import pytest

from outboxd.adapters.configuration import load_settings
from outboxd.core.errors import SettingsError
from outboxd.core.settings import Settings
from outboxd.demo.configuration import Configuration, render
from outboxd.demo.options import DemoOptions
from outboxd.resources import project_directory

DSN = "host='/tmp/a folder' port=5432 user=\"postgres\" dbname=\\shop"


def settings_of(folder: Path, options: DemoOptions) -> Settings:
    configuration = Configuration(folder, DSN, "http://127.0.0.1:4566", options)
    return load_settings(configuration.path, os.environ)


def test_the_demo_runs_on_what_it_started(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, DemoOptions())

    assert settings.database is not None
    assert settings.database.url == DSN
    assert settings.aws.endpoint_url == "http://127.0.0.1:4566"
    assert settings.import_path == (str(project_directory()),)
    assert settings.http.port == 0


def test_the_file_tells_the_port_once_it_is_known(tmp_path: Path) -> None:
    configuration = Configuration(tmp_path, DSN, "http://127.0.0.1:4566", DemoOptions())

    configuration.write(4711)

    assert load_settings(configuration.path, {}).http.port == 4711


def test_queues_on_a_service_of_others_have_names_of_their_own(tmp_path: Path) -> None:
    options = DemoOptions(aws_endpoint="http://127.0.0.1:4566")
    first, second = settings_of(tmp_path, options), settings_of(tmp_path, options)

    assert first.sqs_queue_name("order-events").endswith("-order-events")
    assert first.sqs_queue_name("order-events") != second.sqs_queue_name("order-events")
    assert first.dead_letter_name("order-events").startswith(first.sqs_queue_name("order-events"))


def test_a_value_that_is_missing_is_told() -> None:
    with pytest.raises(SettingsError, match="OUTBOXD_DEMO_DATABASE_URL"):
        render('url = "${OUTBOXD_DEMO_DATABASE_URL}"', {})


def test_the_production_configuration_is_valid() -> None:
    settings = load_settings(
        project_directory() / "config" / "shop.toml", {"DATABASE_URL": "postgresql://db/shop"}
    )

    assert settings.import_path == (str(project_directory()),)
    assert list(settings.queues) == ["order-events", "payment-events", "email-jobs"]
