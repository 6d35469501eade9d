"""How a run ended, in numbers, and whether that is how it had to end."""

from collections.abc import Iterator, Mapping

import msgspec

from outboxd.demo.counting import Count
from outboxd.demo.flows import EFFECTS_OF_PAYMENT, Flow
from outboxd.demo.wording import flow_title


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """`restarts` and `kills_by_child` are by child; `problems` is empty when all is well.

    `emails_repeated` and `calls_repeated` are sums over the flows, each of which says how many of
    them are explained. A run is `stopped` when somebody ended it at some moment, so that work may
    be left.
    """

    orders: int
    events_committed: int
    events_published: int
    events_missing: int
    events_unexpected: int
    effects_expected: int
    effects_missing: int
    effects_duplicated: int
    emails_repeated: int
    calls_repeated: int
    wrong_shelves: int
    refunds: int
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


MAILED = ("emails_sent", "confirmations_sent")


def summarize(
    count: Count,
    *,
    orders_wanted: int | None,
    restarts: Mapping[str, int],
    kills: Mapping[str, int],
    exact_queues: bool,
    seconds: float,
    supervisor_exit_code: int,
) -> Summary:
    """The summary of a run, whose flows are `repetitions.explain`ed.

    `exact_queues` says that the queues' service counts exactly, as stand-ins do; AWS's own numbers
    settle within a minute, and what they do not explain proves nothing.

    A run without `orders_wanted` was stopped at some moment: work that was left is no problem, as
    long as it is somewhere.
    """
    problems = [
        *_never_allowed(count),
        *(_unfinished(count, orders_wanted) if orders_wanted is not None else ()),
        *(_lost(count) if orders_wanted is None and exact_queues else ()),
    ]
    if supervisor_exit_code != 0:
        problems.append(f"the supervisor ended with exit code {supervisor_exit_code}")
    facts = msgspec.structs.asdict(count)
    facts["flows"] = {**count.flows, "analytics_total": facts.pop("analytics_total")}
    repeated = {name: flow.repeated for name, flow in count.flows.items()}
    return Summary(
        **facts,
        emails_repeated=sum(repeated.get(name, 0) for name in MAILED),
        calls_repeated=sum(times for name, times in repeated.items() if name not in MAILED),
        restarts=dict(restarts),
        kills=sum(kills.values()),
        kills_by_child=dict(kills),
        seconds=round(seconds, 1),
        supervisor_exit_code=supervisor_exit_code,
        stopped=orders_wanted is None,
        problems=tuple(problems),
    )


def _never_allowed(count: Count) -> Iterator[str]:
    if count.effects_duplicated > 0:
        yield f"{count.effects_duplicated} effects happened more than once"
    if count.analytics_total.too_many > 0:
        yield f"{count.analytics_total.too_many} minor units were counted as sales and not ordered"
    if count.wrong_shelves > 0:
        yield f"{count.wrong_shelves} articles are not on their shelves as they were sold"
    if count.refunds > 0:
        yield f"{count.refunds} refunds are owed, and every order was paid once"
    if count.dead_letters > 0:
        yield f"{count.dead_letters} messages were dead-lettered"
    for name, flow in count.flows.items():
        if flow.repeated > flow.explained:
            yield (
                f"{flow_title(name)}: {flow.repeated} repeated, and kills and lost answers explain "
                f"{flow.explained} at the most"
            )
    if count.events_unexpected > 0:
        yield f"{count.events_unexpected} events were published that no order explains"


def _lost(count: Count) -> Iterator[str]:
    """Effects that nothing will cause any more: neither an event nor a message that waits.

    An order whose payment the stop came before has no second event yet.
    """
    waiting = count.outbox_backlog + count.messages_left + count.dead_letters
    most = EFFECTS_OF_PAYMENT * (waiting + count.events_missing)
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
    if count.events_missing > 0:
        yield f"{count.events_missing} events are missing from the outbox"
