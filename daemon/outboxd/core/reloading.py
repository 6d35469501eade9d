"""What a new configuration means for the children that run by the old one: pure decisions."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from outboxd.core.children import ChildSpec, Kind, Slot
from outboxd.core.places import Place
from outboxd.core.settings import (
    HttpSettings,
    InboxSettings,
    QueueSettings,
    Settings,
    SupervisorSettings,
)

SQS_SCHEME = "sqs:"


class Candidate(msgspec.Struct, frozen=True):
    """What was found in the configuration file, and by which version of outboxd: either settings
    that can be used, or problems."""

    version: str
    settings: Settings | None = None
    problems: tuple[str, ...] = ()


class Terms(msgspec.Struct, frozen=True):
    """How one child is run: how it is watched, and the settings that it is given."""

    spec: ChildSpec
    settings: Settings


class Difference(msgspec.Struct, frozen=True):
    """Names of children, in the order in which they are started."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    unchanged: tuple[str, ...]


def terms_of(settings: Settings, specs: Iterable[ChildSpec]) -> dict[str, Terms]:
    """The terms of every child of a configuration, in the order of their start."""
    return {spec.name: Terms(spec, given_to(settings, spec.slot)) for spec in specs}


def difference(
    old: Mapping[str, Terms], new: Mapping[str, Terms], *, everything: bool = False
) -> Difference:
    """Which children there are to be started, restarted and ended; `everything` restarts all."""
    both = [name for name in new if name in old]
    changed = tuple(name for name in both if everything or old[name] != new[name])
    return Difference(
        added=tuple(name for name in new if name not in old),
        changed=changed,
        removed=tuple(name for name in old if name not in new),
        unchanged=tuple(name for name in both if name not in changed),
    )


def given_to(settings: Settings, slot: Slot) -> Settings:
    """The part of the settings that a child of this slot reads, all else at its default.

    So a change that is none of a child's business does not restart it, and no process holds a
    secret that it has no use for.
    """
    common = replace(
        settings,
        http=HttpSettings(),
        supervisor=_for_children(settings.supervisor),
        relay=None,
        destinations=Settings().destinations,
        inbox=InboxSettings(),
        queues={},
    )
    match slot.kind:
        case Kind.RELAY:
            return replace(
                common,
                import_path=(),
                relay=settings.relay,
                destinations=settings.destinations,
                queues=_published_to(settings),
            )
        case Kind.EXTENDER:
            return replace(common, import_path=(), database=None, queues=_extended(settings))
        case Kind.CONSUMER:
            own = {name: queue for name, queue in settings.queues.items() if name == slot.queue}
            return replace(common, inbox=settings.inbox, queues=own)


def run_by(settings: Settings, specs: Iterable[ChildSpec]) -> Settings:
    """The settings with the queues alone whose pools are among these children."""
    pools = {spec.slot.queue for spec in specs}
    queues = {name: queue for name, queue in settings.queues.items() if name in pools}
    return replace(settings, queues=queues)


def with_queues_of(terms: Terms, others: Terms) -> Terms:
    """The extender's terms with the queues of other ones too: it may have to give back what a pool
    held that is only ended after the extender has been replaced."""
    queues = {**others.settings.queues, **terms.settings.queues}
    return Terms(terms.spec, replace(terms.settings, queues=queues))


def needs_restart(old: Settings, new: Settings) -> list[str]:
    """One line for each change that a reload cannot make.

    Addresses are bound once, at the start. During a reload children by the old and by the new
    configuration work beside each other, so what makes them find the same queues must not change.
    """
    pairs: Sequence[tuple[str, object, object]] = [
        ("[http] host", old.http.host, new.http.host),
        ("[http] port", old.http.port, new.http.port),
        (
            "[supervisor] control_socket",
            old.supervisor.control_socket,
            new.supervisor.control_socket,
        ),
        ("[aws] region", old.aws.region, new.aws.region),
        ("[aws] endpoint_url", old.aws.endpoint_url, new.aws.endpoint_url),
        *(
            (
                str(Place("queues").subtable(name).at("queue_name")),
                old.sqs_queue_name(name),
                new.sqs_queue_name(name),
            )
            for name in old.queues
            if name in new.queues
        ),
    ]
    return [
        f"{setting}: a reload cannot change it; restart outboxd for that"
        for setting, before, after in pairs
        if before != after
    ]


def _for_children(settings: SupervisorSettings) -> SupervisorSettings:
    return SupervisorSettings(
        grace_seconds=settings.grace_seconds,
        escalation_seconds=settings.escalation_seconds,
        heartbeat_interval_seconds=settings.heartbeat_interval_seconds,
        metrics_interval_seconds=settings.metrics_interval_seconds,
    )


def _published_to(settings: Settings) -> dict[str, QueueSettings]:
    routes = settings.relay.routes if settings.relay is not None else ()
    named = {to.removeprefix(SQS_SCHEME) for route in routes for to in route.to}
    return {
        name: QueueSettings(queue_name=queue.queue_name, fair_groups=queue.fair_groups)
        for name, queue in settings.queues.items()
        if name in named
    }


def _extended(settings: Settings) -> dict[str, QueueSettings]:
    return {
        name: QueueSettings(
            queue_name=settings.queues[name].queue_name,
            visibility_seconds=settings.queues[name].visibility_seconds,
        )
        for name in settings.consumed
    }
