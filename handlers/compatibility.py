"""Whether readers and writers of two versions of an event understand each other."""

from typing import Any, TypeAlias

Schema: TypeAlias = dict[str, Any]

TEXTS = frozenset({"title", "description", "examples"})
"""What a schema says to people only."""


def broken_promises(old: Schema, new: Schema) -> list[str]:
    """What somebody who relies on the old schema would miss; nothing if the change is safe.

    Old and new are at work at the same time, on both ends, and events of the old version may wait
    in a queue for days. So a field stays what it was, and a new one cannot be relied on.
    """
    before, after = old.get("properties", {}), new.get("properties", {})
    due_before, due_after = set(old.get("required", ())), set(new.get("required", ()))
    return [
        *(f"the field {name} is gone" for name in before if name not in after),
        *(
            f"the field {name} is something else"
            for name in before
            if name in after and _meaning(before[name]) != _meaning(after[name])
        ),
        *(
            f"the new field {name} has no default"
            for name in after
            if name in due_after - due_before
        ),
        *(
            f"the field {name} may be left out now"
            for name in before
            if name in after and name in due_before - due_after
        ),
    ]


def _meaning(field: Schema) -> Schema:
    return {name: value for name, value in field.items() if name not in TEXTS}
