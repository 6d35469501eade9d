"""How a run ended, in numbers, and whether that is how it had to end."""

from collections.abc import Iterator, Mapping

import msgspec

from outboxd.demo.counting import Count

CONSUMERS = "consumer:"


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """`restarts` and `kills_by_child` are by child; `problems` is empty when all is well."""

    orders: int
    events_committed: int
    events_published: int
    effects_expected: int
    effects_missing: int
    effects_duplicated: int
    emails_repeated: int
    dead_letters: int
    outbox_backlog: int
    messages_left: int
    restarts: dict[str, int]
    kills: int
    kills_by_child: dict[str, int]
    seconds: float
    supervisor_exit_code: int
    problems: tuple[str, ...]


def summarize(
    count: Count,
    *,
    orders_wanted: int | None,
    restarts: Mapping[str, int],
    kills: Mapping[str, int],
    concurrency: int,
    seconds: float,
    supervisor_exit_code: int,
) -> Summary:
    """The summary of a run. `concurrency` is how many e-mails one pool sends at a time.

    A run without `orders_wanted` was interrupted at some moment: work that was left is no problem.
    """
    in_use_when_killed = concurrency * sum(
        number for child, number in kills.items() if child.startswith(CONSUMERS)
    )
    problems = [
        *_never_allowed(count, in_use_when_killed),
        *(_unfinished(count, orders_wanted) if orders_wanted is not None else ()),
    ]
    if supervisor_exit_code != 0:
        problems.append(f"the supervisor ended with exit code {supervisor_exit_code}")
    return Summary(
        **msgspec.structs.asdict(count),
        restarts=dict(restarts),
        kills=sum(kills.values()),
        kills_by_child=dict(kills),
        seconds=round(seconds, 1),
        supervisor_exit_code=supervisor_exit_code,
        problems=tuple(problems),
    )


def _never_allowed(count: Count, in_use_when_killed: int) -> Iterator[str]:
    if count.effects_duplicated > 0:
        yield f"{count.effects_duplicated} effects happened more than once"
    if count.dead_letters > 0:
        yield f"{count.dead_letters} messages were dead-lettered"
    if count.emails_repeated > in_use_when_killed:
        yield (
            f"{count.emails_repeated} e-mails were repeated, and kills explain "
            f"{in_use_when_killed} at the most"
        )
    if count.events_unexpected > 0:
        yield f"{count.events_unexpected} events were published by repeated requests"


def _unfinished(count: Count, orders_wanted: int) -> Iterator[str]:
    if count.orders != orders_wanted:
        yield f"{count.orders} of {orders_wanted} orders were made"
    if count.effects_missing > 0:
        yield f"{count.effects_missing} of {count.effects_expected} effects are missing"
    if count.outbox_backlog > 0:
        yield f"{count.outbox_backlog} events are not published"
    if count.messages_left > 0:
        yield f"{count.messages_left} messages are left in the queues"
    if count.events_unexpected < 0:
        yield f"{-count.events_unexpected} events are missing from the outbox"


def lines(summary: Summary) -> list[str]:
    """The summary for people."""
    verdict = "all is well" if not summary.problems else "NOT as it should be:"
    return [
        f"{summary.orders} orders, {summary.events_published} of {summary.events_committed} events "
        f"published, in {summary.seconds:g} s",
        f"effects: {summary.effects_expected} expected, {summary.effects_missing} missing, "
        f"{summary.effects_duplicated} duplicated; e-mails repeated: {summary.emails_repeated}",
        f"left: {summary.outbox_backlog} in the outbox, {summary.messages_left} in the queues, "
        f"{summary.dead_letters} dead letters",
        f"kills: {summary.kills}, restarts: {sum(summary.restarts.values())}, "
        f"supervisor's exit code: {summary.supervisor_exit_code}",
        verdict,
        *(f"  {problem}" for problem in summary.problems),
    ]
