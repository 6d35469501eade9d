"""Takes a new configuration into use, child by child, or keeps the old one."""

import logging
from collections.abc import Mapping, Sequence
from typing import Protocol

import anyio
import msgspec

from outboxd.core.children import ChildSpec, Kind
from outboxd.core.errors import SettingsError
from outboxd.core.reloading import (
    Difference,
    Terms,
    difference,
    needs_restart,
    terms_of,
    with_queues_of,
)
from outboxd.core.settings import Settings, SupervisorSettings
from outboxd.supervision.crew import Crew
from outboxd.supervision.life import Life
from outboxd.supervision.observing import ReloadResult, RestartReason

log = logging.getLogger(__name__)


class Source(Protocol):
    """Where configurations come from."""

    async def read(self) -> Settings:
        """The configuration as it is now, its handlers imported somewhere else, so that whatever
        they do at import they do not do here. Raises SettingsError when it cannot be used."""

    def children(self, settings: Settings) -> Sequence[ChildSpec]:
        """The children that it asks of this daemon. Raises SettingsError if there is none."""

    def adopted(self, settings: Settings) -> None:
        """The supervisor itself works by this configuration from now on."""


class Outcome(msgspec.Struct, frozen=True):
    """How a reload ended; the text is for whoever asked for it."""

    result: ReloadResult
    text: str


class _Aborted(Exception):
    """The daemon is to stop."""


class _NotReady(Exception):
    """A child did not become ready by the new configuration."""

    def __init__(self, life: Life) -> None:
        super().__init__(f"{life.name} did not become ready: {life.last_told}")


ABORTED = Outcome(ReloadResult.ABORTED, "not reloaded: outboxd is stopping")


class Reload:
    """One pass from the old configuration to the one that the source has now."""

    def __init__(self, crew: Crew, source: Source, *, everything: bool) -> None:
        self._crew = crew
        self._source = source
        self._everything = everything

    async def run(self, turn: anyio.Lock) -> Outcome:
        """Whatever goes wrong, every child runs by the old configuration at the end."""
        try:
            settings = await self._source.read()
            terms = terms_of(settings, self._source.children(settings))
            if problems := needs_restart(self._crew.settings, settings):
                raise SettingsError(problems)
            async with turn:
                return await self._use(settings, terms)
        except SettingsError as error:
            return Outcome(
                ReloadResult.INVALID,
                "not reloaded, nothing is changed: " + "; ".join(error.problems),
            )
        except _Aborted:
            return ABORTED

    async def _use(self, settings: Settings, terms: Mapping[str, Terms]) -> Outcome:
        old = dict(self._crew.terms)
        change = difference(old, terms, everything=self._everything)
        log.info("reloading", extra=_facts(change))
        touched: list[str] = []
        try:
            for name in terms:
                if name in change.changed or name in change.added:
                    touched.append(name)
                    await self._begin(_bridging(terms[name], old), settings.supervisor)
        except _NotReady as failure:
            log.error("reload failed, going back", extra={"problem": str(failure)})
            lame = await self._go_back(touched[::-1], old, terms)
            but = f"; not ready by it either, and tried again: {', '.join(lame)}" if lame else ""
            return Outcome(
                ReloadResult.CHILD_NOT_READY,
                f"not reloaded, the old configuration is in use again: {failure}{but}",
            )
        await self._end([self._crew.life(name) for name in change.removed])
        self._crew.accept(settings, terms)
        self._source.adopted(settings)
        return Outcome(ReloadResult.OK, _told(change))

    async def _begin(self, terms: Terms, supervisor: SupervisorSettings) -> None:
        """Have one child run by these terms."""
        self._heed_stop()
        name = terms.spec.name
        if name in self._crew.terms:
            life = self._crew.life(name)
            life.adopt(terms, supervisor)
            ready = await life.renew(RestartReason.RELOAD, on_trial=True)
        else:
            life = self._crew.add(terms, supervisor)
            ready = await life.settled()
        self._heed_stop()
        if not ready:
            raise _NotReady(life)

    async def _go_back(
        self, names: Sequence[str], old: Mapping[str, Terms], new: Mapping[str, Terms]
    ) -> Sequence[str]:
        """One after another, the one that failed first: it does nothing now. Those that are not
        ready afterwards."""
        lame: list[str] = []
        for name in names:
            self._heed_stop()
            life = self._crew.life(name)
            if name in old:
                life.adopt(_bridging(old[name], new), self._crew.settings.supervisor)
                if not await life.renew(RestartReason.RELOAD):
                    lame.append(name)
            else:
                await self._end([life])
        return lame

    async def _end(self, lives: Sequence[Life]) -> None:
        """For good, the extender last: it gives back what the others could not finish."""
        self._heed_stop()
        for last in (False, True):
            leaving = [life for life in lives if (life.spec.slot.kind is Kind.EXTENDER) is last]
            for life in leaving:
                life.retire()
            for life in leaving:
                await life.retired()
                # A stop counts who overran it, so nobody is forgotten from then on.
                self._heed_stop()
                self._crew.remove(life)

    def _heed_stop(self) -> None:
        if self._crew.stopping:
            raise _Aborted


def _bridging(terms: Terms, others: Mapping[str, Terms]) -> Terms:
    """The extender alone serves the pools of both configurations."""
    name = terms.spec.name
    if terms.spec.slot.kind is not Kind.EXTENDER or name not in others:
        return terms
    return with_queues_of(terms, others[name])


def _facts(change: Difference) -> dict[str, object]:
    return {
        "added": list(change.added),
        "changed": list(change.changed),
        "removed": list(change.removed),
        "unchanged": len(change.unchanged),
    }


NOTHING_TO_DO = "no child is concerned; `outboxd reload --all` is for code that has changed"


def _told(change: Difference) -> str:
    parts = [
        f"{what} {', '.join(names)}"
        for what, names in (
            ("started", change.added),
            ("restarted", change.changed),
            ("ended", change.removed),
        )
        if names
    ]
    return "reloaded: " + ("; ".join(parts) or NOTHING_TO_DO)
