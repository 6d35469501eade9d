"""The daemon's configuration: everything short, so that minutes hold what takes days elsewhere."""

from collections.abc import Collection
from pathlib import Path

from tests.chaos.workload import ORDERED

APP = Path(__file__).parent / "app"

BASE = """
import_path = ["{app}"]

[database]
url = "{dsn}"

[aws]
endpoint_url = "{endpoint}"
connect_timeout_seconds = 1
read_timeout_seconds = 3

[http]
port = 0

[logging]
format = "json"

# Children are killed all the time, and none may be given up for that.
[supervisor]
grace_seconds = 20
escalation_seconds = 2
failed_starts = 100000
crashes = 100000
backoff_first_seconds = 0.1
backoff_cap_seconds = 1
metrics_interval_seconds = 0.5

[relay]
poll_max_seconds = 0.1
lease_seconds = 6
renew_seconds = 1.5
backoff_first_seconds = 0.2
backoff_cap_seconds = 2
"""

ROUTE = """
[[relay.routes]]
events = "{events}"
to = ["sqs:{queue}"]
"""

QUEUE = """
[queues.{queue}]
queue_name = "{called}"
processes = {processes}
concurrency = 8
visibility_seconds = 8
wait_seconds = 1
max_attempts = 4
backoff = {{ first_seconds = 0.2, cap_seconds = 2 }}
"""

HANDLER = """
[[queues.{queue}.handlers]]
event = "{event}"
handler = "chaos_handlers:{function}"
name = "{name}"
inbox = "{inbox}"
timeout_seconds = {timeout}
"""

TRANSACTIONAL = {
    "fast.sync": ("fast_sync",),
    "fast.async": ("fast_async",),
    "slow.sync": ("slow_sync",),
    "slow.async": ("slow_async",),
    "flaky": ("flaky",),
    "two": ("two_first", "two_second"),
    "parent": ("parent",),
    "child": ("child",),
    "half": ("half_good", "half_bad"),
    "reject": ("reject",),
    "fail": ("fail",),
    "crash": ("crash",),
}

HANG_SECONDS = 3.0
"""The timeout of the handler that never ends; its message is tried as often as any other."""


def configuration(dsn: str, endpoint: str, effects: Path, without: Collection[str]) -> str:
    """The file's text; `effects` is for the handler whose effect is not in the database."""
    parts = [BASE.format(app=APP, dsn=dsn, endpoint=endpoint)]
    if ORDERED not in without:
        # Instead of a negative pattern: no other type begins like these.
        parts.append(ROUTE.format(events=f"{ORDERED}*", queue="ordered"))
    parts.append(ROUTE.format(events="[!o]*", queue="work"))
    parts.append(QUEUE.format(queue="work", called="work", processes=2))
    parts += [
        _handler("work", event, function)
        for event, functions in TRANSACTIONAL.items()
        if event not in without
        for function in functions
    ]
    parts.append(_handler("work", "after", "After", name="after", inbox="after"))
    parts.append(f'options = {{ path = "{effects}" }}\n')
    if "hang" not in without:
        parts.append(_handler("work", "hang", "hang", timeout=HANG_SECONDS))
    if ORDERED not in without:
        parts.append(QUEUE.format(queue="ordered", called="ordered.fifo", processes=1))
        parts.append(_handler("ordered", "ordered", "ordered"))
        parts += [
            _handler(
                "ordered",
                f"{ORDERED}.{kind}",
                kind,
                name=f"ordered_{kind}",
                timeout=HANG_SECONDS if kind == "hang" else 60,
            )
            for kind in ("reject", "fail", "crash", "hang")
            if f"{ORDERED}.{kind}" not in without
        ]
    return "".join(parts)


def _handler(
    queue: str,
    event: str,
    function: str,
    *,
    name: str = "",
    inbox: str = "transaction",
    timeout: float = 60,
) -> str:
    return HANDLER.format(
        queue=queue,
        event=event,
        function=function,
        name=name or function,
        inbox=inbox,
        timeout=timeout,
    )
