"""docs/settings.md is as code and comments are now: `python -m tests.settings` writes it anew."""

import re

import pytest

from outboxd.core.settings import Section, Settings
from tests.settings import page
from tests.settings.catalogue import NAME, Setting, Table, catalogue, general
from tests.settings.prose import anchor, as_markdown
from tests.settings.reference import PATH, reference
from tests.settings.reloads import changed, configuration, effect

TEXT = PATH.read_text(encoding="utf-8")
TABLES = catalogue(reference(TEXT))
SETTINGS = [setting for table in TABLES for setting in table.settings]
IDS = [".".join(setting.path) for setting in SETTINGS]


def test_the_page_is_up_to_date() -> None:
    assert page.PATH.read_text(encoding="utf-8") == page.page(), "run: python -m tests.settings"


def test_every_type_of_a_table_is_walked() -> None:
    paths = {table.settings[0].path[:-1] for table in TABLES}

    assert ("queues", NAME, "handlers") in paths
    # All but [destinations] itself, which has only tables in it.
    assert len(paths) == len(TABLES) == len(Section.__subclasses__()) - 1


@pytest.mark.parametrize("setting", SETTINGS, ids=IDS)
def test_every_setting_has_a_meaning_a_range_and_an_effect(setting: Setting) -> None:
    assert setting.comment is not None, "config/outboxd.toml leaves it out"
    assert len(" ".join(setting.comment.lines)) > 20, "config/outboxd.toml does not explain it"
    assert setting.allowed


def test_every_comment_of_the_reference_is_used() -> None:
    known = {setting.path for setting in SETTINGS}
    assert {general(path) for path in reference(TEXT).settings} == known


@pytest.mark.parametrize("table", [table for table in TABLES if table.header])
def test_every_table_says_what_it_is_for(table: Table) -> None:
    assert len(table.purpose) > 10


def test_a_heading_has_an_address_of_its_own_that_links_lead_to() -> None:
    headings = re.findall(r"^## (.*)$", page.page(), re.MULTILINE)
    addresses = [anchor(heading) for heading in headings]
    linked = {
        target
        for document in page.PATH.parent.rglob("*.md")
        for target in re.findall(
            r"\(settings\.md#([^)]*)\)" if document != page.PATH else r"\(#([^)]*)\)",
            document.read_text(encoding="utf-8"),
        )
    }

    assert len(set(addresses)) == len(addresses)
    assert "queuesname" in linked
    assert linked - set(addresses) == set()


def test_every_row_has_as_many_cells_as_the_table_has_columns() -> None:
    rows = re.findall(r"^\|.*\|$", page.page(), re.MULTILINE)

    widths = {len(re.findall(r"(?<!\\)\|", row)) for row in rows}

    assert widths == {6}


def test_no_text_of_a_comment_is_taken_for_html() -> None:
    outside_of_code = re.sub(r"`[^`\n]*`", "", page.page())
    assert re.findall(r"<\w", outside_of_code) == []


# What a reload does


@pytest.mark.parametrize("setting", SETTINGS, ids=IDS)
def test_the_change_that_is_tried_is_one(setting: Setting) -> None:
    shown = configuration(TEXT)
    assert changed(shown, setting.path) != shown


@pytest.mark.parametrize(
    ("path", "told"),
    [
        (("http", "port"), "refused: restart outboxd"),
        (("supervisor", "crashes"), "no child"),
        (("logging", "level"), "all children"),
        (("relay", "wake_up"), "relay"),
        (("relay", "routes", "events"), "relay"),
        (("inbox", "retention_days"), "all pools"),
        (("queues", NAME, "visibility_seconds"), "extender, its pool"),
        (("queues", NAME, "recycle", "max_messages"), "its pool"),
        (("queues", NAME, "handlers", "backoff"), "its pool"),
    ],
)
def test_whom_a_reload_restarts(path: tuple[str, ...], told: str) -> None:
    assert effect(configuration(TEXT), path) == told


def test_a_setting_that_the_configuration_does_not_show_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="shows no value"):
        changed(Settings(), ("aws", "endpoint_url"))


# Plain text as Markdown


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("with a `*` and a *", r"with a `*` and a \*"),
        ('keep "hold" or "sqs:<name>"', 'keep `"hold"` or `"sqs:<name>"`'),
        ("a < b, <name>", "a &lt; b, &lt;name&gt;"),
        ('with inbox = "off" at max_attempts', 'with `inbox = "off"` at `max_attempts`'),
        ("in [http] or [else]", "in [`[http]`](#http) or `[else]`"),
        ("docs/envelopes.md shows it", "[envelopes.md](envelopes.md) shows it"),
        (
            'docs/configuration.md, "FIFO queues".',
            '[configuration.md, "FIFO queues"](configuration.md#fifo-queues).',
        ),
    ],
)
def test_plain_text_becomes_markdown(text: str, markdown: str) -> None:
    assert as_markdown(text, {"[http]": "#http"}) == markdown
