"""The children of the supervisor: which there are, and that the extender outlives the others."""

from collections.abc import Callable, Mapping, Sequence

import anyio
from anyio.abc import TaskGroup

from outboxd.core.children import ChildSpec, Kind
from outboxd.core.reloading import Terms, terms_of
from outboxd.core.settings import Settings, SupervisorSettings
from outboxd.supervision.life import Life
from outboxd.supervision.observing import SupervisorObserver
from outboxd.supervision.process import Spawn
from outboxd.supervision.stopping import StopOrder
from outboxd.supervision.surroundings import Surroundings


class Crew:
    """One life for each slot of the configuration that was accepted last."""

    def __init__(
        self,
        settings: Settings,
        specs: Sequence[ChildSpec],
        surroundings: Surroundings,
        observer: SupervisorObserver,
        spawn: Spawn,
        removed: Callable[[Life], None],
    ) -> None:
        """`removed` is told of a slot that is no more."""
        self.settings = settings
        self.terms: Mapping[str, Terms] = terms_of(settings, specs)
        self.stop_workers = StopOrder()
        self.stop_extender = StopOrder()
        self._surroundings = surroundings
        self._observer = observer
        self._spawn = spawn
        self._removed = removed
        self._workers: TaskGroup | None = None
        self._extenders: TaskGroup | None = None
        self.lives: Sequence[Life] = tuple(
            self._life(terms, settings.supervisor) for terms in self.terms.values()
        )

    @property
    def stopping(self) -> bool:
        return self.stop_workers.given.is_set()

    def life(self, name: str) -> Life:
        """The slot of that name. Raises StopIteration if there is none."""
        return next(life for life in self.lives if life.name == name)

    def queues(self) -> Sequence[str]:
        """Those that have pools."""
        queues = (life.spec.slot.queue for life in self.lives if life.spec.slot.queue)
        return tuple(dict.fromkeys(queues))

    async def run(self, before_the_extender: Callable[[], None]) -> None:
        """Run all children until they are ordered to stop; `before_the_extender`, which has to
        order its end, is called when all the others have ended."""
        async with anyio.create_task_group() as self._extenders:
            async with anyio.create_task_group() as self._workers:
                # Reloads may end every worker, and bring others.
                self._workers.start_soon(self.stop_workers.given.wait)
                for life in self.lives:
                    self._group_of(life).start_soon(life.live)
            before_the_extender()

    def add(self, terms: Terms, supervisor: SupervisorSettings) -> Life:
        """Start one more slot, on trial."""
        life = self._life(terms, supervisor, on_trial=True)
        self.lives = (*self.lives, life)
        self._observer.child_added(life.name, life.spec.slot.kind)
        self._group_of(life).start_soon(life.live)
        return life

    def remove(self, life: Life) -> None:
        """Forget a slot that is over."""
        self.lives = tuple(each for each in self.lives if each is not life)
        self._observer.child_removed(life.name, life.spec.slot.kind)
        self._removed(life)

    def accept(self, settings: Settings, terms: Mapping[str, Terms]) -> None:
        """Every child runs by this configuration."""
        self.settings, self.terms = settings, terms
        for life in self.lives:
            life.adopt(life.terms, settings.supervisor)
        order = list(terms)
        self.lives = tuple(sorted(self.lives, key=lambda life: order.index(life.name)))

    def _life(
        self, terms: Terms, supervisor: SupervisorSettings, *, on_trial: bool = False
    ) -> Life:
        extender = terms.spec.slot.kind is Kind.EXTENDER
        return Life(
            terms,
            supervisor,
            self._surroundings,
            self._observer,
            self.stop_extender if extender else self.stop_workers,
            self._spawn,
            on_trial=on_trial,
        )

    def _group_of(self, life: Life) -> TaskGroup:
        group = self._extenders if life.spec.slot.kind is Kind.EXTENDER else self._workers
        assert group is not None
        return group
