"""`outboxd provision`: creates the queues that the configuration names."""

import argparse
import os
from typing import TYPE_CHECKING, Any

from outboxd.cli.arguments import add_config_argument, add_json_argument
from outboxd.cli.confirmation import confirm
from outboxd.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from outboxd.core.provisioning import Step


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = subparsers.add_parser(
        "provision",
        help="create the configured queues in SQS",
        description=(
            "Creates every queue of [queues] and its dead-letter queue, FIFO ones for names that "
            "end in .fifo, and corrects the attributes that the configuration names: visibility "
            "timeout, receive wait, retention, redrive policy. Prints the plan, then carries it "
            "out. Nothing is ever deleted; other attributes, such as encryption and policies, are "
            "left alone. Can be repeated."
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
    from outboxd.adapters.sqs.provisioning import QueueProvisioner
    from outboxd.core.provisioning import plan, wanted_queues

    settings = load_settings(arguments.config, os.environ)
    wanted = wanted_queues(settings)
    provisioner = QueueProvisioner(settings.aws)
    steps = plan(wanted, provisioner.existing([queue.name for queue in wanted]))
    if arguments.json:
        _print_json(steps, dry_run=arguments.dry_run)
    else:
        _print_plan(steps)
    if not arguments.dry_run:
        _confirm_losses(steps, yes=arguments.yes)
        for step in steps:
            provisioner.carry_out(step)
    return ExitCode.OK


def _confirm_losses(steps: "tuple[Step, ...]", *, yes: bool) -> None:
    shortened = [step.queue.name for step in steps if step.shortens_retention]
    if shortened:
        confirm(
            f"shortening the retention of {', '.join(shortened)} deletes the messages in them that "
            "are older",
            yes=yes,
        )


def _print_plan(steps: "tuple[Step, ...]") -> None:
    for step in steps:
        print(f"{step.action:<9}  {step.queue.name}")
        for change in step.changes:
            before = f"{change.old} -> " if change.old is not None else ""
            print(f"           {change.attribute}: {before}{change.new}")
    counts = [f"{_number(steps, action)} {noun}" for action, noun in _NOUNS.items()]
    print(f"plan: {', '.join(counts)}", flush=True)


_NOUNS = {"create": "to create", "update": "to update", "unchanged": "unchanged"}


def _number(steps: "tuple[Step, ...]", action: str) -> int:
    return sum(step.action == action for step in steps)


def _print_json(steps: "tuple[Step, ...]", *, dry_run: bool) -> None:
    import msgspec

    queues = [
        {"name": step.queue.name, "action": step.action, "changes": step.changes} for step in steps
    ]
    print(msgspec.json.encode({"dry_run": dry_run, "queues": queues}).decode(), flush=True)
