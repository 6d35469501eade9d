"""One table of the configuration file as a type, and which of its settings are secret."""

from typing import Annotated, Any, get_args

from msgspec import Meta, Struct
from msgspec.structs import fields

Secret = Annotated[str, Meta(min_length=1, extra={"secret": True, "hidden": True})]
"""A setting that may also be given as `<name>_file`, and that no log, error or page ever shows."""

OptionalSecret = Annotated[
    Annotated[str, Meta(min_length=1)] | None, Meta(extra={"secret": True, "hidden": True})
]


class Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table of the configuration file; its repr hides what is secret."""

    def __repr__(self) -> str:
        shown = (
            f"{field.name}={'***' if hidden(field.type) else repr(getattr(self, field.name))}"
            for field in fields(self)
        )
        return f"{type(self).__name__}({', '.join(shown)})"


def hidden(annotation: Any) -> bool:
    """Whether a setting of this type must not be shown."""
    return _marked(annotation, "hidden")


def secret(annotation: Any) -> bool:
    """Whether a setting of this type may be given as a file of its own."""
    return _marked(annotation, "secret")


def _marked(annotation: Any, mark: str) -> bool:
    return any(
        isinstance(part, Meta) and (part.extra or {}).get(mark, False)
        for part in get_args(annotation)
    )
