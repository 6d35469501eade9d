"""`outboxd provision`: creates in AWS what the configuration names."""

import argparse
import os
from typing import TYPE_CHECKING, Any

from outboxd.cli.arguments import add_config_argument, add_json_argument
from outboxd.cli.confirmation import confirm
from outboxd.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from outboxd.adapters.provisioning import Plan
    from outboxd.core.provisioning import Action, Change, Step
    from outboxd.core.provisioning_steps import FanOutStep


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = subparsers.add_parser(
        "provision",
        help="create the configured queues, topics and buses in AWS",
        description=(
            "Creates every queue of [queues] and its dead-letter queue, FIFO ones for names that "
            "end in .fifo, and corrects the attributes that the configuration names: visibility "
            "timeout, receive wait, retention, redrive policy. Does the same for the topics, "
            "subscriptions, event buses and rules of [destinations], and lets them send to their "
            "queues. Prints the plan, then carries it out. Nothing is ever deleted; other "
            "attributes, such as encryption, are left alone. Can be repeated."
        ),
        epilog="example: outboxd provision --dry-run --config config/shop.toml",
    )
    parser.add_argument("--dry-run", action="store_true", help="print the plan and stop")
    parser.add_argument(
        "--yes",
        action="store_true",
        help="do not ask before a retention is shortened, which deletes older messages",
    )
    add_config_argument(parser)
    add_json_argument(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Plan, print, act."""
    from outboxd.adapters.configuration import load_settings
    from outboxd.adapters.provisioning import Provisioner

    settings = load_settings(arguments.config, os.environ)
    provisioner = Provisioner(settings)
    plan = provisioner.plan()
    if arguments.json:
        _print_json(plan, dry_run=arguments.dry_run)
    else:
        _print_plan(plan)
    if not arguments.dry_run:
        _confirm_losses(plan.queues, yes=arguments.yes)
        provisioner.carry_out(plan)
    return ExitCode.OK


def _confirm_losses(steps: "tuple[Step, ...]", *, yes: bool) -> None:
    shortened = [step.queue.name for step in steps if step.shortens_retention]
    if shortened:
        confirm(
            f"shortening the retention of {', '.join(shortened)} deletes the messages in them that "
            "are older",
            yes=yes,
        )


def _print_plan(plan: "Plan") -> None:
    for step in plan.queues:
        _print_step(step.action, step.queue.name, step.changes)
    for each in plan.fan_out:
        _print_step(each.action, f"{each.item} {each.wanted.name}", each.changes)
    counts = [f"{plan.actions.count(action)} {noun}" for action, noun in _nouns().items()]
    print(f"plan: {', '.join(counts)}", flush=True)


def _print_step(action: "Action", name: str, changes: "tuple[Change, ...]") -> None:
    print(f"{action:<9}  {name}")
    for change in changes:
        before = f"{change.old} -> " if change.old is not None else ""
        print(f"           {change.attribute}: {before}{change.new}")


def _nouns() -> "dict[Action, str]":
    from outboxd.core.provisioning import Action

    return {
        Action.CREATE: "to create",
        Action.UPDATE: "to update",
        Action.UNCHANGED: "unchanged",
    }


def _print_json(plan: "Plan", *, dry_run: bool) -> None:
    import msgspec

    from outboxd.core.provisioning_steps import Item

    queues = [
        {"name": step.queue.name, "action": step.action, "changes": step.changes}
        for step in plan.queues
    ]
    others = {
        _PLURALS[item]: [_shown(step) for step in plan.fan_out if step.item is item]
        for item in Item
    }
    shown = {"dry_run": dry_run, "queues": queues, **others}
    print(msgspec.json.encode(shown).decode(), flush=True)


_PLURALS = {
    "topic": "topics",
    "bus": "buses",
    "policy of queue": "policies",
    "subscription": "subscriptions",
    "rule": "rules",
}


def _shown(step: "FanOutStep") -> "dict[str, object]":
    return {"name": step.wanted.name, "action": step.action, "changes": step.changes}
