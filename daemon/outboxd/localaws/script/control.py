"""`/_localaws/faults`: write the script, read it, take it back."""

from collections.abc import Collection
from typing import Any

import msgspec

from outboxd.localaws.http1 import Answer, Request
from outboxd.localaws.script.decoding import Unscriptable, decoded
from outboxd.localaws.script.rule import Rule
from outboxd.localaws.script.script import Script

_JSON = "application/json"


class FaultsControl:
    """The three methods on the collection of faults."""

    def __init__(self, script: Script, operations: Collection[str]) -> None:
        self._script = script
        self._operations = operations

    def add(self, request: Request) -> Answer:
        """POST: `{"id"}` of the new fault; 400 with an explanation for what is none."""
        try:
            rule = self._script.add(decoded(request.body, self._operations))
        except Unscriptable as error:
            return _answer(400, {"error": str(error)})
        return _answer(201, {"id": rule.id, "seed": rule.address.seed})

    def list(self, request: Request) -> Answer:
        """GET: every fault with its settings and how often it has taken hold."""
        return _answer(200, {"faults": [self._described(rule) for rule in self._script]})

    def clear(self, request: Request, id: str | None = None) -> Answer:
        """DELETE: the faults that were taken back, as GET would have told them."""
        listed = [self._described(rule) for rule in self._script if id in (None, rule.id)]
        if id is not None and not listed:
            known = ", ".join(rule.id for rule in self._script) or "none"
            return _answer(404, {"error": f"there is no fault {id!r}; there are: {known}"})
        self._script.clear(id)
        return _answer(200, {"cleared": listed})

    def _described(self, rule: Rule) -> dict[str, Any]:
        return {
            "id": rule.id,
            **msgspec.to_builtins(rule.kind),
            **msgspec.to_builtins(rule.address),
            "fired": rule.fired,
            "over": self._script.over(rule),
        }


def _answer(status: int, content: dict[str, Any]) -> Answer:
    return Answer(status, _JSON, msgspec.json.encode(content))
