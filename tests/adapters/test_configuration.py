"""A configuration file becomes settings, or one clear line for every problem in it."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from outboxd.adapters.configuration import MAX_FILE_BYTES, load_settings
from outboxd.core.errors import SettingsError
from outboxd.core.expectations import unwrapped
from outboxd.core.settings import Section, Settings
from tests.settings.reference import PATH as ANNOTATED
from tests.settings.reference import uncommented, values

SMALLEST = """
[queues.orders]
[[queues.orders.handlers]]
event = "order.created"
handler = "shop:ship"
name = "shop.ship"
inbox = "off"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, and where the configuration is."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def load(folder: Path, text: str, environ: Mapping[str, str] | None = None) -> Settings:
    path = Path("x.toml")
    (folder / path).write_text(text, encoding="utf-8")
    return load_settings(path, environ or {})


def problems_of(
    folder: Path, text: str, environ: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        load(folder, text, environ)
    return caught.value.problems


def problem_of(folder: Path, text: str, environ: Mapping[str, str] | None = None) -> str:
    (problem,) = problems_of(folder, text, environ)
    return problem


def test_the_smallest_configuration_has_every_default(folder: Path) -> None:
    settings = load(folder, SMALLEST)

    assert settings.queues["orders"].concurrency == 10
    assert settings.database is None
    assert settings.import_path == (str(folder),)


def test_an_integer_may_stand_for_a_number_of_seconds(folder: Path) -> None:
    assert load(folder, f"{SMALLEST}[supervisor]\ngrace_seconds = 30").supervisor == (
        msgspec.structs.replace(Settings().supervisor, grace_seconds=30.0)
    )


# What is wrong with one setting


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "[queues.order-events]\nconcurency = 3",
            'x.toml: [queues.order-events] concurency: unknown key; did you mean "concurrency"?',
        ),
        ("[queue.x]", 'x.toml: queue: unknown key; did you mean "queues"?'),
        ("zebra = 1", "x.toml: zebra: unknown key"),
        (
            "[http]\nport = 70000",
            "x.toml: [http] port: expected an integer from 0 to 65535, found 70000",
        ),
        (
            '[http]\nport = "9464"',
            'x.toml: [http] port: expected an integer from 0 to 65535, found "9464"',
        ),
        (
            "[http]\nport = true",
            "x.toml: [http] port: expected an integer from 0 to 65535, found true",
        ),
        ("http = 5", "x.toml: [http]: expected a table, found 5"),
        ("[[http]]", "x.toml: [http]: expected a table, found an array"),
        (
            "[supervisor]\ngrace_seconds = inf",
            "x.toml: [supervisor] grace_seconds: expected a number above 0 and at most 31536000, "
            "found Infinity",
        ),
        (
            "[supervisor]\ngrace_seconds = 2026-01-01",
            "x.toml: [supervisor] grace_seconds: expected a number above 0 and at most 31536000, "
            "found a date or a time",
        ),
        (
            '[logging]\nformat = "xml"',
            'x.toml: [logging] format: expected "auto" or "json" or "text", found "xml"',
        ),
        (
            '[database]\nurl = "postgresql://h/d"\nschema = "Public"',
            "x.toml: [database] schema: expected a schema name of 1 to 63 lower-case letters, "
            'digits and underscores, found "Public"',
        ),
        (
            "[database]",
            "x.toml: [database] url: missing (or url_file); expected a text that is not empty",
        ),
        ("[relay]\nroutes = 5", "x.toml: [relay] routes: expected an array, found 5"),
        (
            '[[relay.routes]]\nevents = "a"\nto = ["sqs:a"]\n[[relay.routes]]\nevents = "b"\n'
            'to = "sqs:b"',
            'x.toml: [[relay.routes]] #2 to: expected an array of 1 to 16 entries, found "sqs:b"',
        ),
        (
            '[[relay.routes]]\nevents = "a"\nto = []',
            "x.toml: [[relay.routes]] #1 to: expected an array of 1 to 16 entries, found an array",
        ),
        (
            '[[relay.routes]]\nevents = "a"\nto = ["sqs:a", 7]',
            "x.toml: [[relay.routes]] #1 to #2: expected a text, found 7",
        ),
        (
            '[[queues.q.handlers]]\nevent = "a"\nhandler = "m:f"\nname = "n1"\n'
            '[[queues.q.handlers]]\nevent = "a"\nhandler = "m.f"\nname = "payment.mark_paid"',
            "x.toml: [[queues.q.handlers]] #2 (payment.mark_paid) handler: expected "
            '"package.module:function", found "m.f"',
        ),
        (
            '[[queues.q.handlers]]\nevent = "a"\nhandler = "m:f"',
            "x.toml: [[queues.q.handlers]] #1 name: missing; expected a name of 1 to 200 letters, "
            "digits and any of _ . : / -",
        ),
        (
            '[queues."my queue"]',
            'x.toml: [queues."my queue"]: expected a queue name of 1 to 80 letters, digits, '
            'hyphens and underscores, found "my queue"',
        ),
        (
            '[queues.q]\nqueue_name = "trailing\\n"',
            "x.toml: [queues.q] queue_name: expected a queue name of 1 to 80 letters, digits, "
            'hyphens and underscores, found "trailing\\n"',
        ),
        (
            "[queues.q]\nmax_attempts = 99999999999999999999999999",
            "x.toml: [queues.q] max_attempts: expected an integer from 1 to 1000000000, "
            "found 99999999999999999999999999",
        ),
        (
            "[queues.q]\nfair_groups = 1",
            "x.toml: [queues.q] fair_groups: expected true or false, found 1",
        ),
        (
            "[queues.q]\nrecycle = { max_rss_bytes = 1000 }",
            "x.toml: [queues.q.recycle] max_rss_bytes: expected an integer from 67108864 to "
            "1125899906842624, found 1000",
        ),
        (
            "[queues.q]\nbackoff = { delays_seconds = 5 }",
            "x.toml: [queues.q.backoff] delays_seconds: expected an array of at most 100 entries, "
            "found 5",
        ),
        (
            "[inbox]\nretention_days = 0",
            "x.toml: [inbox] retention_days: expected a number of days from 1/1440 (a minute) to "
            "36500, found 0",
        ),
        (
            '[aws]\nregion = "a\\u0000b"',
            "x.toml: [aws] region: contains a NUL character, which nothing here may hold",
        ),
    ],
)
def test_a_wrong_setting_is_one_line_that_names_it(folder: Path, text: str, problem: str) -> None:
    assert problem_of(folder, text) == problem


def test_all_problems_are_told_at_once(folder: Path) -> None:
    problems = problems_of(
        folder,
        'colour = "red"\n[http]\nport = -1\nhots = "x"\n[queues.q]\nwait_seconds = 21\n'
        '[[queues.q.handlers]]\nname = "n"\n[database]\nurl = "${ABSENT}"',
    )

    assert [problem.split(": ")[1] for problem in problems] == [
        "colour",
        "[database] url",
        "[http] hots",
        "[http] port",
        "[queues.q] wait_seconds",
        "[[queues.q.handlers]] #1 (n) event",
        "[[queues.q.handlers]] #1 (n) handler",
    ]


def test_rules_between_settings_name_the_file_too(folder: Path) -> None:
    problems = problems_of(folder, f"{SMALLEST}[supervisor]\ngrace_seconds = 12")

    assert len(problems) == 1
    assert problems[0].startswith("x.toml: [queues.orders] wait_seconds: ")


def test_a_long_wrong_value_is_shortened(folder: Path) -> None:
    problem = problem_of(folder, f'[logging]\nlevel = "{"x" * 5000}"')

    assert len(problem) < 200


def test_a_very_long_unknown_key_is_compared_with_nothing(folder: Path) -> None:
    assert problem_of(folder, f"{'k' * 900_000} = 1").endswith(": unknown key")


# References


def test_references_are_expanded_everywhere(folder: Path) -> None:
    text = """
    import_path = ["${HERE}"]
    [http]
    port = "${PORT:-9464}"
    [supervisor]
    grace_seconds = "${GRACE}"
    [[relay.routes]]
    events = "${KIND}.*"
    to = ["sqs:${QUEUE}"]
    [database]
    url = "postgresql://${HOST:-localhost}/shop"
    [queues.orders]
    [[queues.orders.handlers]]
    event = "*"
    handler = "shop:ship"
    name = "${NAME}"
    options = { where = "${PLACE}", count = 3, literal = "$${PLACE}" }
    """
    environ = {
        "HERE": str(folder),
        "GRACE": "33.5",
        "KIND": "order",
        "QUEUE": "orders",
        "NAME": "ship",
        "PLACE": "5",
    }

    settings = load(folder, text, environ)

    assert settings.http.port == 9464
    assert settings.supervisor.grace_seconds == 33.5
    assert settings.relay is not None
    assert settings.relay.routes[0].events == "order.*"
    assert settings.relay.routes[0].to == ("sqs:orders",)
    handler = settings.queues["orders"].handlers[0]
    assert handler.name == "ship"
    assert handler.options == {"where": "5", "count": 3, "literal": "${PLACE}"}


def test_a_reference_that_is_empty_leaves_the_default(folder: Path) -> None:
    settings = load(
        folder, f'{SMALLEST}[aws]\nendpoint_url = "${{E:-}}"\nregion = "${{R}}"', {"R": ""}
    )

    assert settings.aws == Settings().aws


def test_a_required_setting_cannot_be_left_empty(folder: Path) -> None:
    assert "[database] url: missing" in problem_of(
        folder, '[database]\nurl = "${URL}"', {"URL": ""}
    )


def test_a_missing_variable_is_named_with_its_key(folder: Path) -> None:
    assert problem_of(folder, '[database]\nurl = "${DATABASE_URL}"') == (
        "x.toml: [database] url: the environment variable DATABASE_URL is not set; set it, "
        "or give a default as in ${DATABASE_URL:-value}"
    )


def test_a_reference_of_the_wrong_type_is_told_by_its_value(folder: Path) -> None:
    assert problem_of(folder, '[http]\nport = "${PORT}"', {"PORT": "http"}).endswith('found "http"')


def test_bytes_of_the_environment_that_are_no_text_are_told(folder: Path) -> None:
    problem = problem_of(folder, '[aws]\nregion = "${R}"', {"R": "\udcff"})

    assert problem == (
        "x.toml: [aws] region: holds bytes of an environment variable that are not UTF-8"
    )


# Secrets


def test_a_secret_comes_from_a_file_beside_the_configuration(folder: Path) -> None:
    (folder / "url").write_text("postgresql://u:${not-a-reference}@h/d\n")

    settings = load(folder, f'{SMALLEST}[database]\nurl_file = "url"')

    assert settings.database is not None
    assert settings.database.url == "postgresql://u:${not-a-reference}@h/d"


def test_a_secrets_file_may_be_named_by_a_reference(folder: Path) -> None:
    (folder / "url").write_text("postgresql://h/d")

    settings = load(folder, f'{SMALLEST}[database]\nurl_file = "${{D}}/url"', {"D": str(folder)})

    assert settings.database is not None
    assert settings.database.url == "postgresql://h/d"


def test_a_secret_and_its_file_exclude_each_other(folder: Path) -> None:
    assert problem_of(folder, '[database]\nurl = "postgresql://h/d"\nurl_file = "url"') == (
        "x.toml: [database] url_file: url is given too; keep one of them"
    )


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "does not exist"),
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"a\0b", "contains a NUL character"),
        (b"x" * 70_000, "is longer than 65536 bytes"),
    ],
)
def test_an_unusable_secrets_file_is_told(
    folder: Path, content: bytes | None, complaint: str
) -> None:
    if content is not None:
        (folder / "url").write_bytes(content)

    problem = problem_of(folder, '[database]\nurl_file = "url"')

    assert problem.startswith(f"x.toml: [database] url_file: {folder / 'url'} {complaint}")


def test_a_directory_is_no_secrets_file(folder: Path) -> None:
    assert "is a directory, not a file" in problem_of(folder, '[database]\nurl_file = "."')


def test_no_problem_shows_a_secret(folder: Path) -> None:
    text = """
    [database]
    url = 5555
    [[queues.q.handlers]]
    event = "*"
    handler = "m:f"
    name = "n"
    options = { key = ["hunter2"], when = 1979-05-27, nothing = nan }
    """

    problems = problems_of(folder, text)

    assert "5555" not in str(problems)
    assert "hunter2" not in str(problems)
    assert problems[0] == (
        "x.toml: [database] url: expected a text that is not empty, found an integer (not shown)"
    )
    assert len(problems) == 4


# The file itself


def test_a_missing_file_says_how_to_name_another(folder: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(Path("nowhere/x.toml"), {})

    assert caught.value.problems == (
        "nowhere/x.toml: does not exist; name the file with --config or OUTBOXD_CONFIG",
    )


def test_a_directory_is_no_configuration(folder: Path) -> None:
    with pytest.raises(SettingsError, match="is a directory, not a file"):
        load_settings(folder, {})


def test_a_file_that_cannot_be_opened_is_told(folder: Path) -> None:
    (folder / "file").touch()

    with pytest.raises(SettingsError, match="cannot be read: Not a directory"):
        load_settings(Path("file/x.toml"), {})


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"[http]\nport 9464\n", "line 2, column 6: Expected '=' after a key"),
        (b"[http]\n[http]\n", "line 2, column 6: Cannot declare ('http',) twice"),
        (b'a = "\xff"', "is not UTF-8: byte 5 does not decode"),
        (b"#" * (MAX_FILE_BYTES + 1), "is longer than 1048576 bytes"),
        (b"a = " + b"[" * 100_000, "arrays are nested too deeply"),
        (b"a = " + b"1" * 5000, "cannot be read as TOML"),
    ],
)
def test_what_is_no_toml_is_one_problem(folder: Path, content: bytes, complaint: str) -> None:
    (folder / "x.toml").write_bytes(content)

    with pytest.raises(SettingsError) as caught:
        load_settings(Path("x.toml"), {})

    (problem,) = caught.value.problems
    assert problem.startswith("x.toml: ")
    assert complaint in problem


def test_a_mark_that_windows_editors_write_is_ignored(folder: Path) -> None:
    (folder / "x.toml").write_bytes(b"\xef\xbb\xbf" + SMALLEST.encode())

    assert load_settings(Path("x.toml"), {}).queues


# The import path


def test_the_import_path_is_the_files_directory_then_the_working_directory(folder: Path) -> None:
    (folder / "etc").mkdir()
    (folder / "etc/x.toml").write_text(SMALLEST)

    settings = load_settings(Path("etc/x.toml"), {})

    assert settings.import_path == (str(folder / "etc"), str(folder))


def test_entries_of_the_import_path_are_relative_to_the_file(folder: Path) -> None:
    (folder / "etc").mkdir()
    (folder / "lib").mkdir()
    (folder / "etc/x.toml").write_text(f'import_path = ["../lib", ".", "{folder}"]\n{SMALLEST}')

    settings = load_settings(Path("etc/x.toml"), {})

    assert settings.import_path == tuple(str(folder / name) for name in ("lib", "etc", ""))


def test_an_entry_that_is_no_directory_is_told(folder: Path) -> None:
    assert problem_of(folder, f'import_path = [".", "lib"]\n{SMALLEST}') == (
        f"x.toml: import_path #2: {folder / 'lib'} is not a directory"
    )


# The annotated configuration


def sections(kind: type[Section], table: Mapping[str, Any]) -> Iterator[tuple[type[Section], Any]]:
    """Every section of the tree, with the table that is written for it."""
    yield kind, table
    for field in msgspec.structs.fields(kind):
        bare, _ = unwrapped(field.type)
        for inner in (bare, *getattr(bare, "__args__", ())):
            if isinstance(inner, type) and issubclass(inner, Section):
                written = table[field.name]
                yield from sections(inner, written if inner is bare else first_entry(written))


def first_entry(value: Any) -> Any:
    return value[0] if isinstance(value, list) else next(iter(value.values()))


def test_the_annotated_configuration_loads_as_it_is() -> None:
    load_settings(ANNOTATED, {})


def test_the_annotated_configuration_loads_with_every_line_switched_on(folder: Path) -> None:
    load(folder, uncommented(ANNOTATED.read_text(encoding="utf-8")))


def test_the_annotated_configuration_has_every_setting_with_its_true_default() -> None:
    """Where nothing is the default, the file may have an example instead."""
    written = list(sections(Settings, values(ANNOTATED.read_text(encoding="utf-8"))))

    assert len({kind for kind, _ in written}) == len(Section.__subclasses__())
    for kind, table in written:
        for field in msgspec.structs.fields(kind):
            assert field.name in table, f"{kind.__name__}.{field.name} is not in the file"
            match field.default:
                case None | () | msgspec.NODEFAULT | Section():
                    continue
                case tuple() as several:
                    default: object = list(several)
                case default:
                    pass
            assert table[field.name] == default, f"{kind.__name__}.{field.name}"


@pytest.mark.parametrize(
    ("environ", "text", "region"),
    [
        ({}, "", "us-east-1"),
        ({"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "eu-west-2"}, "", "eu-west-1"),
        ({"AWS_DEFAULT_REGION": "eu-west-2"}, "[aws]\nconnect_timeout_seconds = 1", "eu-west-2"),
        ({"AWS_REGION": "eu-west-1"}, '[aws]\nregion = "eu-north-1"', "eu-north-1"),
    ],
)
def test_the_region_of_the_environment_counts_where_the_file_names_none(
    folder: Path, environ: dict[str, str], text: str, region: str
) -> None:
    assert load(folder, SMALLEST + text, environ).aws.region == region
