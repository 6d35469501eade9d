"""What a reload does with a change of each setting: asked of the code that decides it."""

from typing import Any

from msgspec.structs import replace

from outboxd.core.children import Kind, Slot, children_of
from outboxd.core.reloading import difference, needs_restart, terms_of
from outboxd.core.settings import Section, Settings
from outboxd.core.settings_decoding import decode_settings
from tests.settings.catalogue import NAME
from tests.settings.reference import KeyPath, values

OTHER = "another-queue"
"""Beside the queue whose settings are changed, to tell its own pool from all pools."""


def configuration(text: str) -> Settings:
    """Everything that the reference shows, and one more pool."""
    settings = decode_settings(values(text), {}, lambda name: name)
    consumed = settings.queues[settings.consumed[0]]
    return replace(settings, queues={**settings.queues, OTHER: consumed})


def effect(settings: Settings, path: KeyPath) -> str:
    """Whom a reload restarts when the setting at this path is another than in `settings`."""
    new = changed(settings, path)
    if needs_restart(settings, new):
        return "refused: restart outboxd"
    found = difference(_terms(settings), _terms(new))
    touched = {*found.added, *found.changed, *found.removed}
    everybody = [spec.slot for spec in children_of(settings)]
    return _told({slot for slot in everybody if slot.name in touched}, everybody)


def changed(value: Any, path: KeyPath) -> Any:
    """The value with something else at the path. It need not be allowed there, only different."""
    match value, path:
        case Section(), (key, *rest):
            return replace(value, **{key: changed(getattr(value, key), tuple(rest))})
        case dict(), (name, *rest) if name == NAME:
            first = next(iter(value))
            return {**value, first: changed(value[first], tuple(rest))}
        case (first, *others), (_, *_):
            return (changed(first, path), *others)
        case _:
            return _another(value)


def _another(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return f"{value}x"
        case tuple():
            return (*value, *value[-1:]) or ("x",)
        case dict():
            return {**value, "x": 1}
        case Section():
            return None
        case _:
            raise ValueError(f"the reference shows no value, or one of no known kind: {value!r}")


def _terms(settings: Settings) -> Any:
    return terms_of(settings, children_of(settings))


def _told(touched: set[Slot], everybody: list[Slot]) -> str:
    if not touched:
        return "no child"
    if touched == set(everybody):
        return "all children"
    kinds = {slot.kind for slot in touched}
    told = [kind.value for kind in (Kind.EXTENDER, Kind.RELAY) if kind in kinds]
    pools = {slot.queue for slot in touched if slot.kind is Kind.CONSUMER}
    if pools:
        told.append("its pool" if len(pools) == 1 else "all pools")
    return ", ".join(told)
