"""The catalogue of events as a page for people."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from handlers.compatibility import Schema

INTRODUCTION = """\
# Events and jobs of the shop

Written by `python -m handlers.catalogue` from [handlers/events.py](../handlers/events.py); a test
tells when that was forgotten. Beside each type is its JSON Schema, for who reads it in another
language.

- **An event is a fact**, told to whoever listens. All of them are about one order: their aggregate
  type is `order`, their aggregate id the `order_id`, so what happens to one order is published in
  order.
- **A job is work** for one handler.
- A payload has identities and what readers cannot do without, never a whole row. Who needs more
  reads it where it is kept, as it is at that moment.
- Money is an integer in the minor unit of its currency: 5350 are 53.50 SGD.

## How a type may change

Producers and consumers are deployed one after the other, and an event may wait in a queue for days.
So old and new versions meet, in both directions:

1. **Readers ignore fields that they do not know.** A producer may be deployed first.
2. **A new field is optional**: it has a default, which readers take when an older producer left it
   out.
3. **A field is never removed or renamed, and never becomes something else**: no other type, no
   other unit, no other bounds, no other meaning.
4. What cannot be done so is a **new type**, beside the old one (`order.created.v2`). Both are
   published until nobody listens to the old one.

`python -m handlers.catalogue` compares with the schemas that are there, and writes nothing if the
second or the third is broken. What is ignored is not refused, so nobody notices an optional field
that is misspelt: test the producer.
"""


def page(events: Mapping[str, Schema], jobs: Mapping[str, Schema], schemas: Path) -> str:
    """The whole page; `schemas` is the folder of the schemas in the project."""
    parts = [
        INTRODUCTION,
        "## Events\n",
        *(_section(name, schema, schemas) for name, schema in events.items()),
        "## Jobs\n",
        *(_section(name, schema, schemas) for name, schema in jobs.items()),
    ]
    return "\n".join(parts)


def _section(name: str, schema: Schema, schemas: Path) -> str:
    lines = [
        f"### `{name}`\n",
        f"{schema['description']}\n",
        f"[schema](../{schemas.as_posix()}/{name}.json)\n",
        "| field | type | |",
        "|---|---|---|",
        *_rows(schema),
    ]
    return "\n".join(lines) + "\n"


def _rows(schema: Schema) -> Iterator[str]:
    required = schema.get("required", [])
    for name, field in schema["properties"].items():
        optional = "" if name in required else "Optional. "
        yield f"| `{name}` | {_kind(field)} | {optional}{field.get('description', '')} |"


def _kind(field: dict[str, Any]) -> str:
    """The type as people say it, with its bounds."""
    kind = str(field.get("format", field.get("type", "any")))
    lowest, above = field.get("minimum"), field.get("exclusiveMinimum")
    bounds = [
        *([] if lowest is None else [f"from {lowest:,}"]),
        *([] if above is None else [f"above {above:,}"]),
        *([f"to {field['maximum']:,}"] if "maximum" in field else []),
    ]
    length = [f"at most {field['maxLength']} characters"] if "maxLength" in field else []
    return ", ".join([" ".join([kind, *bounds]), *length])
