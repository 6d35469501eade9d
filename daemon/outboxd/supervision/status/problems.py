"""What a person should know, from the most to the least urgent, and one word for the whole."""

from collections.abc import Iterator, Sequence

from outboxd.core.figures import count, seconds
from outboxd.supervision.observing import State
from outboxd.supervision.status.history import RECENT_STEPS
from outboxd.supervision.status.model import Child, Handler, Health, Level, Outbox, Problem, Queue

LATE_SECONDS = 120.0
"""As in the alert about the relay's lag."""

MOST = 15
"""More would hide what matters."""

SLOW_SECONDS = 60.0
"""From an event to its effect: worth a look, though some queues may take their time."""

STALE_SECONDS = 60.0
"""Queues are counted every 15 seconds, the outbox every 10."""

SILENT_SECONDS = 5.0
SILENT_INTERVALS = 2.5
"""One heartbeat may be late. It is killed much later, a pool after half a minute at least."""

FAILED_SHARE = 0.05
"""As in the alert about handlers."""

MOSTLY_FAILED_SHARE = 0.5

_OBSTACLES = {
    "extender": "there is no extender",
    "database": "the database is away",
    "suspects": "what a crash left behind is being written down",
}

_STATES = {
    State.STARTING: "is starting",
    State.DRAINING: "finishes what it has, to be replaced",
    State.STOPPED: "is stopped",
    State.BACKOFF: "has ended, and waits for its next start",
    State.FAILED: "keeps failing; it is tried again slowly",
}

_ORDER = {"critical": 0, "warning": 1, "note": 2}


def problems_of(
    *,
    broken: Sequence[str],
    not_ready: Sequence[str],
    children: Sequence[Child],
    outbox: Outbox | None,
    queues: Sequence[Queue],
    handlers: Sequence[Handler],
    reload_refused: bool,
    heartbeat_interval_seconds: float,
) -> tuple[Problem, ...]:
    """`broken` and `not_ready` are what /healthz and /readyz say."""
    silence = max(SILENT_SECONDS, SILENT_INTERVALS * heartbeat_interval_seconds)
    found = [
        *(Problem("critical", text, "") for text in broken),
        *_of_children(children, not_ready, silence),
        *(_of_outbox(outbox) if outbox is not None else ()),
        *(problem for queue in queues for problem in _of_queue(queue)),
        *(problem for handler in handlers for problem in _of_handler(handler)),
    ]
    if reload_refused:
        text = "the last reload was refused: the old configuration is in use"
        found.append(Problem("note", text, "outboxd check"))
    found.sort(key=lambda problem: _ORDER[problem.level])
    if len(found) <= MOST:
        return tuple(found)
    more = f"{_things(len(found) - MOST, 'more problem')}, not shown here"
    return (*found[:MOST], Problem(found[MOST].level, more))


def health_of(problems: Sequence[Problem], children: Sequence[Child], *, stopping: bool) -> Health:
    """One word. A daemon whose children start for the first time is not degraded by that."""
    if stopping:
        return "stopping"
    if any(problem.level == "critical" for problem in problems):
        return "unhealthy"
    waiting = [child for child in children if child.state != State.READY]
    if waiting and all(_begins(child) for child in waiting):
        return "starting"
    if any(problem.level == "warning" for problem in problems):
        return "degraded"
    return "healthy"


def summary_of(health: Health, problems: Sequence[Problem]) -> str:
    """A sentence beside the word."""
    notes = sum(problem.level == "note" for problem in problems)
    others = len(problems) - notes
    match health:
        case "healthy":
            return f"All is at work; {_things(notes)} to look at." if notes else "All is at work."
        case "starting":
            return "The first processes are starting."
        case "stopping":
            return "It finishes what it has, and ends."
        case "degraded":
            return f"It works, with {_things(others, 'problem')}."
        case "unhealthy":
            return "Something is broken that does not mend itself."


def _things(number: int, noun: str = "thing") -> str:
    return f"1 {noun}" if number == 1 else f"{number} {noun}s"


def _begins(child: Child) -> bool:
    return child.state in (State.STARTING, State.STOPPED) and child.restarts == 0


def _of_children(
    children: Sequence[Child], not_ready: Sequence[str], silence: float
) -> Iterator[Problem]:
    """`silence` is for how many seconds a process that works may say nothing."""
    told = set()
    for child in children:
        if child.state != State.READY:
            told.add(child.name)
            yield Problem("warning", f"{child.name} {_STATES[State(child.state)]}")
        elif (age := child.heartbeat_age_seconds or 0) > silence:
            told.add(child.name)
            yield Problem("warning", f"{child.name} has said nothing for {seconds(age)}")
    if failed := [child for child in children if child.recent_failures]:
        times = _times(sum(child.recent_failures or 0 for child in failed))
        who = failed[0].name if len(failed) == 1 else f"{len(failed)} processes"
        yield Problem("note", f"{who} failed {times} in the last 15 minutes")
    for reason in not_ready:  # what a state does not show: a pool that hears nothing
        if reason.partition(" ")[0] not in told and reason != "stopping":
            yield Problem("warning", reason)


def _of_outbox(outbox: Outbox) -> Iterator[Problem]:
    for destination in outbox.destinations:
        if destination.up is False:
            text = f"{destination.name} is not reached: its events wait, and nothing is lost"
            yield Problem("warning", text)
    if outbox.database_failures_per_second:
        yield Problem("warning", "the database fails statements of the relay")
    if (outbox.oldest_seconds or 0) > LATE_SECONDS:
        text = f"the oldest event has waited for {seconds(outbox.oldest_seconds)}"
        yield Problem("warning", text, "outboxd outbox list")
    if (outbox.counted_seconds_ago or 0) > STALE_SECONDS:
        text = f"the outbox was last counted {seconds(outbox.counted_seconds_ago)} ago"
        yield Problem("warning", text)
    if outbox.dead:
        text = f"{_of(outbox.dead, 'event')} dead in the outbox"
        yield Problem("note", text, "outboxd outbox list --state dead")
    if outbox.blocked_aggregates:
        what = _of(outbox.blocked_aggregates, "aggregate", "waits", "wait")
        yield Problem(
            "note", f"{what} behind an event that failed", "outboxd outbox list --state blocked"
        )
    if outbox.unrouted_aggregates:
        what = _of(outbox.unrouted_aggregates, "aggregate", "waits", "wait")
        yield Problem("note", f"{what} for a route", "outboxd outbox list --state held")


def _of_queue(queue: Queue) -> Iterator[Problem]:
    if queue.paused:
        yield Problem(
            "note", f"{queue.name} is paused by an operator", f"outboxd resume {queue.name}"
        )
    for obstacle in queue.blocked_by:
        if obstacle in _OBSTACLES:
            yield Problem("warning", f"{queue.name} receives nothing: {_OBSTACLES[obstacle]}")
    if queue.receive_errors_per_second:
        yield Problem("warning", f"{queue.name}: receiving fails, and is tried again")
    if _stands_still(queue):
        text = f"{_of(queue.visible or 0, 'message', 'waits', 'wait')} in {queue.name}"
        yield Problem("warning", f"{text}, and none was received in the last minute")
    if (queue.counted_seconds_ago or 0) > STALE_SECONDS:
        text = f"{queue.name} was last counted {seconds(queue.counted_seconds_ago)} ago"
        yield Problem("warning", text)
    if _is_uncounted(queue):
        yield Problem("warning", f"{queue.name} has not been counted: how much waits is not known")
    if queue.dead_letters is None and queue.counted_seconds_ago is not None:
        text = f"the dead letters of {queue.name} cannot be counted"
        yield Problem("note", text, f"outboxd dlq list {queue.name}")
    if (queue.p95_seconds or 0) > SLOW_SECONDS:
        behind = f", {count(queue.visible)} messages wait" if queue.visible else ""
        text = f"{queue.name} is late: {seconds(queue.p95_seconds)} from event to effect{behind}"
        yield Problem("note", text)
    if queue.dead_letters:
        what = _of(queue.dead_letters, "dead letter", "waits", "wait")
        yield Problem(
            "note", f"{what} for a person: {queue.name}", f"outboxd dlq list {queue.name}"
        )


def _of_handler(handler: Handler) -> Iterator[Problem]:
    share = handler.failed_share or 0.0
    if share >= FAILED_SHARE:
        level: Level = "warning" if share >= MOSTLY_FAILED_SHARE else "note"
        yield Problem(
            level,
            f"{handler.name} fails: {share:.0%} of its last minute's messages",
            f"outboxd dlq list {handler.queue}" if handler.recent_dead_letters else "",
        )


def _is_uncounted(queue: Queue) -> bool:
    """Whether its pool told its numbers all the last minute, and never this one: a process that has
    just begun has counted nothing yet."""
    told = queue.history.handled_per_second[-RECENT_STEPS:]
    counts = queue.history.visible[-RECENT_STEPS:]
    return (
        queue.counted_seconds_ago is None
        and len(told) == RECENT_STEPS
        and None not in told
        and all(count is None for count in counts)
    )


def _stands_still(queue: Queue) -> bool:
    """Whether messages were there all the last minute, and none came; a busy pool asks for none."""
    lately = queue.history.visible[-RECENT_STEPS:]
    full = (queue.running or 0) >= (queue.concurrency or 1)
    return (
        len(lately) == RECENT_STEPS
        and all(lately)
        and queue.received_per_second == 0
        and not (queue.paused or full)
    )


def _of(number: int, noun: str, one: str = "is", many: str = "are") -> str:
    return f"1 {noun} {one}" if number == 1 else f"{count(number)} {noun}s {many}"


def _times(number: int) -> str:
    return "once" if number == 1 else f"{count(number)} times"
