"""The summary of a run for people."""

from collections.abc import Iterator

from outboxd.demo.summary import Summary
from outboxd.demo.wording import counted, flow_title


def lines(summary: Summary) -> list[str]:
    """What became of everything, and the verdict; every line fits a terminal of 80 columns."""
    verdict = "all is well" if not summary.problems else "NOT as it should be:"
    return [
        f"{counted(summary.orders, 'order')}, {summary.events_published} of "
        f"{summary.events_committed} events published, in {summary.seconds:g} s",
        *_flows(summary),
        *(_stopped(summary) if summary.stopped else _ended(summary)),
        _processes(summary),
        verdict,
        *(f"  {problem}" for problem in summary.problems),
    ]


def _stopped(summary: Summary) -> list[str]:
    """What was not done yet when somebody stopped the work, which is not what was lost."""
    missing = summary.effects_missing
    told = [
        f"effects: {summary.effects_expected} expected, {summary.effects_expected - missing} done, "
        f"{summary.effects_duplicated} duplicated",
    ]
    if missing > 0:
        told.append(
            f"  {missing} not done yet: stopped with {summary.outbox_backlog} in the outbox and "
            f"{summary.messages_left} in the queues"
        )
    if missing > 0 and not summary.problems:
        told.append("  nothing is lost: a daemon that starts again goes on with them")
    return told


def _ended(summary: Summary) -> list[str]:
    return [
        f"effects: {summary.effects_expected} expected, {summary.effects_missing} missing, "
        f"{summary.effects_duplicated} duplicated",
        f"left: {summary.outbox_backlog} in the outbox, {summary.messages_left} in the queues, "
        f"{summary.dead_letters} dead letters",
    ]


def _flows(summary: Summary) -> Iterator[str]:
    yield f"  {'flow':<24}{'expected':>12}{'got':>12}{'repeated':>10}{'at most':>9}"
    for name, flow in summary.flows.items():
        title = flow_title(name) + (", cents" if name == "analytics_total" else "")
        may_repeat = flow.repeated > 0 or flow.explained > 0
        repeated = f"{flow.repeated:>10}{flow.explained:>9}" if may_repeat else ""
        yield f"  {title:<24}{flow.expected:>12}{flow.got:>12}{repeated}"


def _processes(summary: Summary) -> str:
    """Restarts count what somebody else killed as well; kills are the demo's own."""
    killed = f"killed by the demo: {summary.kills}, " if summary.kills > 0 else ""
    return (
        f"{killed}restarts: {sum(summary.restarts.values())}, "
        f"supervisor's exit code: {summary.supervisor_exit_code}"
    )
