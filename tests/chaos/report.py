"""The verdict as a person reads it, and as a program does."""

import json

import msgspec

from tests.chaos.run import Result

WIDTH = 48


def as_table(result: Result) -> str:
    """One row for each check, those that failed with their culprits."""
    lines = [f"{'check':<{WIDTH}} {'expected':>10} {'got':>10}"]
    for check in result.checks:
        mark = "ok" if check.ok else "FAILED"
        lines.append(f"{check.name:<{WIDTH}} {check.expected:>10} {check.got:>10}  {mark}")
        lines += [f"    {culprit}" for culprit in check.culprits]
    lines.append("")
    lines += [f"{name}: {value}" for name, value in result.facts.items()]
    return "\n".join(lines)


def as_json(result: Result) -> str:
    """The same as one object."""
    return json.dumps({**msgspec.to_builtins(result), "ok": result.ok})
