"""The catalogue of events: what is written is what the code says, and promises are kept."""

import json
from pathlib import Path

import pytest

from handlers.catalogue import PAGE, SCHEMAS, drift, files, main
from handlers.compatibility import Schema, broken_promises
from outboxd.resources import project_directory

CREATED = SCHEMAS / "order.created.json"


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A project whose catalogue is up to date."""
    assert main([], tmp_path) == 0
    return tmp_path


def test_the_catalogue_says_what_the_code_says(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["--check"], project_directory())

    assert (status, capsys.readouterr().err) == (0, "")


def test_the_catalogue_has_every_type() -> None:
    page = files()[PAGE]

    for path in (project_directory() / SCHEMAS).glob("*.json"):
        assert f"### `{path.stem}`" in page
    assert len(files()) == 12


def test_what_was_written_has_not_drifted(written: Path) -> None:
    assert drift(written) == []
    assert main(["--check"], written) == 0


@pytest.mark.parametrize("path", [PAGE, CREATED])
def test_a_change_by_hand_is_drift(
    written: Path, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (written / path).open("a") as file:
        file.write("\n")

    assert main(["--check"], written) == 1
    assert capsys.readouterr().err.splitlines() == [
        f"{path} is out of date",
        "write them again with: python -m handlers.catalogue",
    ]


def test_what_is_missing_or_too_many_is_drift(written: Path) -> None:
    (written / CREATED).rename(written / SCHEMAS / "order.made.json")

    assert drift(written) == [
        f"{CREATED} is out of date",
        f"{SCHEMAS}/order.made.json describes nothing any more",
    ]


def test_a_change_that_breaks_a_promise_is_not_written(
    written: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (written / PAGE).write_text("before")
    schema = json.loads((written / CREATED).read_text())
    schema["properties"]["coupon"] = {"type": "string"}
    (written / CREATED).write_text(json.dumps(schema))

    assert main([], written) == 1

    assert "order.created: the field coupon is gone\n" in capsys.readouterr().err
    assert (written / PAGE).read_text() == "before"


def a_schema(required: tuple[str, ...] = ("total",), **properties: object) -> Schema:
    return {
        "title": "any",
        "properties": {"total": {"type": "integer", "maximum": 9}, **properties},
        "required": list(required),
    }


@pytest.mark.parametrize(
    ("new", "broken"),
    [
        (a_schema(), []),
        (a_schema(coupon={"type": "string", "default": ""}), []),
        (a_schema(total={"type": "integer", "maximum": 9, "description": "Better said."}), []),
        (a_schema(("total", "coupon"), coupon={}), ["the new field coupon has no default"]),
        (a_schema(total={"type": "integer", "maximum": 8}), ["the field total is something else"]),
        (a_schema(total={"type": "string"}), ["the field total is something else"]),
        (a_schema(()), ["the field total may be left out now"]),
        ({"properties": {}}, ["the field total is gone"]),
    ],
)
def test_which_changes_break_a_promise(new: Schema, broken: list[str]) -> None:
    assert broken_promises(a_schema(), new) == broken
