"""The script: all faults that were asked for, in the order in which they were."""

from collections.abc import Iterator

from outboxd.localaws.clock import Clock
from outboxd.localaws.faults import Fault, Target
from outboxd.localaws.http1 import Request
from outboxd.localaws.script.acts import Act
from outboxd.localaws.script.choosing import Batch, candidates, content_of, drawn, holds
from outboxd.localaws.script.decoding import Scripted
from outboxd.localaws.script.forms import form_of
from outboxd.localaws.script.kinds import (
    BATCHES,
    Duplicate,
    FailEntries,
    Reorder,
    StaleReceipt,
    Swallow,
)
from outboxd.localaws.script.rule import Rule


class Script:
    """Keeps `Faults` and `DeliveryFaults`. A call is hit by one fault at most: the oldest of those
    that want it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rules: dict[str, Rule] = {}
        self._last_number = 0
        # Those that may still take hold: most calls come when there is none.
        self._live: list[Rule] = []

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules.values())

    @property
    def active(self) -> bool:
        return bool(self._live)

    def add(self, scripted: Scripted) -> Rule:
        self._last_number += 1
        rule = Rule(self._last_number, *scripted, self._clock.now())
        self._rules[rule.id] = rule
        self._live.append(rule)
        return rule

    def over(self, rule: Rule) -> bool:
        """Whether the fault will not take hold any more."""
        return rule.over(self._clock.now())

    def clear(self, id: str | None = None) -> list[Rule]:
        """Take one fault back, or all, with what they hold. Raises KeyError for an unknown id."""
        cleared = list(self._rules.values()) if id is None else [self._rules[id]]
        for rule in cleared:
            del self._rules[rule.id]
            rule.clear()
        self._review()
        return cleared

    def close(self) -> None:
        """The server stops: what was to be done later never is."""
        for rule in self._rules.values():
            for work in rule.late:
                work.cancel()

    def for_call(self, target: Target, request: Request) -> Fault | None:
        for rule in self._waiting_for(target):
            match rule.kind:
                case Duplicate() | Reorder():
                    continue
                case Swallow() | StaleReceipt() | FailEntries() if target.operation in BATCHES:
                    act = _batch_act(rule, rule.kind, target, request)
                case _:
                    act = _act(rule, target, request)
            if act is not None:
                self._review()
                return act
        return None

    def reorders(self, target: Target) -> bool:
        return any(
            self._fired(rule)
            for rule in self._waiting_for(target)
            if isinstance(rule.kind, Reorder)
        )

    def duplicates(self, target: Target, body: str) -> bool:
        return any(
            self._fired(rule)
            for rule in self._waiting_for(target)
            if isinstance(rule.kind, Duplicate)
            and (rule.address.containing is None or rule.address.containing in body)
        )

    def _waiting_for(self, target: Target) -> list[Rule]:
        now = self._clock.now()
        return [rule for rule in self._live if rule.meets(target, now)]

    def _fired(self, rule: Rule) -> bool:
        fires = rule.fires()
        self._review()
        return fires

    def _review(self) -> None:
        now = self._clock.now()
        self._live = [rule for rule in self._live if not rule.over(now)]


def _act(rule: Rule, target: Target, request: Request) -> Act | None:
    containing = rule.address.containing
    if containing is not None and not holds(content_of(request), containing):
        return None
    return Act(rule, target, None) if rule.fires() else None


def _batch_act(
    rule: Rule,
    kind: Swallow | StaleReceipt | FailEntries,
    target: Target,
    request: Request,
) -> Act | None:
    """A batch without a chosen entry is not meant, and so not counted."""
    content = content_of(request)
    form = form_of(target.operation)
    possible = candidates(kind, form, content, rule.address.containing)
    if not possible or not rule.fires():
        return None
    return Act(rule, target, Batch(form, content, drawn(possible, kind.share, rule.dice)))
