"""Writes what others read of the events: docs/events.md, and a JSON Schema for each type.

    python -m handlers.catalogue            # write them
    python -m handlers.catalogue --check    # exit 1 if they do not say what handlers/events.py says

The schemas that are there are the promise that was made: a change that breaks it is not written.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from handlers.compatibility import Schema, broken_promises
from handlers.events import EVENTS, JOBS
from handlers.events_page import page

PROJECT = Path(__file__).resolve().parent.parent
PAGE = Path("docs/events.md")
SCHEMAS = Path("schemas/events")

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class PromiseBroken(Exception):
    """Readers of these events would fail; give the change a new field or a new type."""


def schema_of(name: str, kind: type[msgspec.Struct]) -> Schema:
    """The JSON Schema of a payload, in one piece."""
    whole = msgspec.json.schema(kind)
    # No payload refers to another Struct, so the one definition is the schema.
    ((_, definition),) = whole["$defs"].items()
    return {"$schema": DIALECT, "$id": f"{name}.json", **definition, "title": name}


def files() -> dict[Path, str]:
    """Every file of the catalogue, by its place in the project."""
    schemas = {name: schema_of(name, kind) for name, kind in sorted({**EVENTS, **JOBS}.items())}
    texts = {SCHEMAS / f"{name}.json": _json(schema) for name, schema in schemas.items()}
    events = {name: schemas[name] for name in EVENTS}
    jobs = {name: schemas[name] for name in JOBS}
    return {PAGE: page(events, jobs, SCHEMAS), **texts}


def drift(project: Path) -> list[str]:
    """What is not as `write` would leave it, one line each."""
    texts = files()
    there = {path.relative_to(project) for path in (project / SCHEMAS).glob("*.json")}
    return [
        *(f"{path} is out of date" for path in texts if _read(project / path) != texts[path]),
        *(f"{path} describes nothing any more" for path in sorted(there - texts.keys())),
    ]


def write(project: Path) -> None:
    """Bring the files up to date. Raises `PromiseBroken`, having written nothing."""
    texts = files()
    broken = [
        f"{path.stem}: {promise}"
        for path, text in texts.items()
        if path.suffix == ".json" and (known := _read(project / path)) is not None
        for promise in broken_promises(json.loads(known), json.loads(text))
    ]
    if broken:
        raise PromiseBroken("\n".join(broken))
    for path, text in texts.items():
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text(text, encoding="utf-8")


def main(arguments: Sequence[str] | None = None, project: Path = PROJECT) -> int:
    """The exit status; what is wrong is told on stderr."""
    parser = argparse.ArgumentParser(prog="python -m handlers.catalogue")
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 on drift")
    if parser.parse_args(arguments).check:
        lines = drift(project)
        if lines:
            lines.append("write them again with: python -m handlers.catalogue")
    else:
        lines = _written(project)
    sys.stderr.writelines(f"{line}\n" for line in lines)
    return 1 if lines else 0


def _written(project: Path) -> list[str]:
    try:
        write(project)
    except PromiseBroken as error:
        return [
            *str(error).splitlines(),
            "nothing was written: docs/events.md says how an event may change",
        ]
    return []


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def _json(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.exit(main())
