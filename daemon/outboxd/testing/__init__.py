"""outboxd.testing: for the tests of those who build on outboxd.

`run` calls a handler as the daemon would, `relay_pending` publishes what is in the outbox into
lists, `local_aws` is an AWS of the test's own, and `FaultScript` makes it fail on cue;
docs/testing.md shows them at work. Everything is loaded when first used: a test of an AWS client
needs no database driver, and nothing here needs the AWS SDK.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from outboxd.adapters.memory_destination import Delivered
    from outboxd.localaws.calls import CallCount
    from outboxd.testing.aws import LocalAws, QueueDepth, local_aws
    from outboxd.testing.control import ControlError
    from outboxd.testing.faults import FaultRefused, FaultScript, ScriptedFault
    from outboxd.testing.handling import run, run_async
    from outboxd.testing.relaying import relay_pending, relay_pending_async

__all__ = [
    "CallCount",
    "ControlError",
    "Delivered",
    "FaultRefused",
    "FaultScript",
    "LocalAws",
    "QueueDepth",
    "ScriptedFault",
    "local_aws",
    "relay_pending",
    "relay_pending_async",
    "run",
    "run_async",
]

_HOMES = {
    "CallCount": "outboxd.localaws.calls",
    "ControlError": "outboxd.testing.control",
    "Delivered": "outboxd.adapters.memory_destination",
    "FaultRefused": "outboxd.testing.faults",
    "FaultScript": "outboxd.testing.faults",
    "LocalAws": "outboxd.testing.aws",
    "QueueDepth": "outboxd.testing.aws",
    "ScriptedFault": "outboxd.testing.faults",
    "local_aws": "outboxd.testing.aws",
    "relay_pending": "outboxd.testing.relaying",
    "relay_pending_async": "outboxd.testing.relaying",
    "run": "outboxd.testing.handling",
    "run_async": "outboxd.testing.handling",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'outboxd.testing' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
