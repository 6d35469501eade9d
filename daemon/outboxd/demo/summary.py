"""How a run ended, in numbers, and whether that is how it had to end."""

from collections.abc import Iterator, Mapping

import msgspec

from outboxd.demo.counting import Count
from outboxd.demo.flows import EFFECTS_OF_PAYMENT, Flow

CONSUMERS = "consumer:"


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """`restarts` and `kills_by_child` are by child; `problems` is empty when all is well.

    `repetitions_explained` is the most that kills, and answers of partners that were lost on
    purpose, account for: nobody can tell whether a call whose answer is lost was heard. A run is
    `stopped` when somebody ended it at some moment, so that work may be left.
    """

    orders: int
    events_expected: int
    events_committed: int
    events_published: int
    effects_expected: int
    effects_missing: int
    effects_duplicated: int
    emails_repeated: int
    calls_repeated: int
    repetitions_explained: int
    dead_letters: int
    outbox_backlog: int
    messages_left: int
    flows: dict[str, Flow]
    restarts: dict[str, int]
    kills: int
    kills_by_child: dict[str, int]
    seconds: float
    supervisor_exit_code: int
    stopped: bool
    problems: tuple[str, ...]


def summarize(
    count: Count,
    *,
    orders_wanted: int | None,
    restarts: Mapping[str, int],
    kills: Mapping[str, int],
    concurrency: int,
    answers_lost: int,
    exact_queues: bool,
    seconds: float,
    supervisor_exit_code: int,
) -> Summary:
    """The summary of a run. `concurrency` is how many calls one pool makes at a time, and
    `answers_lost` how often a partner did what it was asked and did not say so.

    `exact_queues` says that the queues' service counts exactly, as stand-ins do; AWS's own numbers
    settle within a minute, and what they do not explain proves nothing.

    A run without `orders_wanted` was stopped at some moment: work that was left is no problem, as
    long as it is somewhere.
    """
    in_use_when_killed = concurrency * sum(
        number for child, number in kills.items() if child.startswith(CONSUMERS)
    )
    problems = [
        *_never_allowed(count, in_use_when_killed, answers_lost),
        *(_unfinished(count, orders_wanted) if orders_wanted is not None else ()),
        *(_lost(count) if orders_wanted is None and exact_queues else ()),
    ]
    if supervisor_exit_code != 0:
        problems.append(f"the supervisor ended with exit code {supervisor_exit_code}")
    facts = msgspec.structs.asdict(count)
    facts["flows"] = {**count.flows, "analytics_total": facts.pop("analytics_total")}
    return Summary(
        **facts,
        repetitions_explained=in_use_when_killed + answers_lost,
        restarts=dict(restarts),
        kills=sum(kills.values()),
        kills_by_child=dict(kills),
        seconds=round(seconds, 1),
        supervisor_exit_code=supervisor_exit_code,
        stopped=orders_wanted is None,
        problems=tuple(problems),
    )


def _never_allowed(count: Count, in_use_when_killed: int, answers_lost: int) -> Iterator[str]:
    if count.effects_duplicated > 0:
        yield f"{count.effects_duplicated} effects happened more than once"
    if count.analytics_total.too_many > 0:
        yield f"{count.analytics_total.too_many} minor units were counted as sales and not ordered"
    if count.dead_letters > 0:
        yield f"{count.dead_letters} messages were dead-lettered"
    if count.emails_repeated > in_use_when_killed:
        yield (
            f"{count.emails_repeated} e-mails were repeated, and kills explain "
            f"{in_use_when_killed} at the most"
        )
    if count.calls_repeated > in_use_when_killed + answers_lost:
        yield (
            f"{count.calls_repeated} calls of partners were repeated, and kills and lost answers "
            f"explain {in_use_when_killed + answers_lost} at the most"
        )
    if count.events_unexpected > 0:
        yield f"{count.events_unexpected} events were published by repeated requests"


def _lost(count: Count) -> Iterator[str]:
    """Effects that nothing will cause any more: neither an event nor a message that waits.

    An order whose payment the stop came before has no second event yet.
    """
    waiting = count.outbox_backlog + count.messages_left + count.dead_letters
    most = EFFECTS_OF_PAYMENT * (waiting + max(0, -count.events_unexpected))
    if count.effects_missing > most:
        yield (
            f"{count.effects_missing} effects are missing, and what still waits explains {most} "
            "at the most"
        )


def _unfinished(count: Count, orders_wanted: int) -> Iterator[str]:
    if count.orders != orders_wanted:
        yield f"{count.orders} of {orders_wanted} orders were made"
    if count.effects_missing > 0:
        yield f"{count.effects_missing} of {count.effects_expected} effects are missing"
    if count.analytics_total.missing > 0:
        yield f"{count.analytics_total.missing} minor units of sales are missing in the analytics"
    if count.outbox_backlog > 0:
        yield f"{count.outbox_backlog} events are not published"
    if count.messages_left > 0:
        yield f"{count.messages_left} messages are left in the queues"
    if count.events_unexpected < 0:
        yield f"{-count.events_unexpected} events are missing from the outbox"
