"""The daemon's configurations for trials; what is not set has its default, as for any user."""

from benchmarks.configurations import DATABASE, HEAD
from benchmarks.place import PROJECT

RELAY = """
[relay]
wake_up = {wake_up}

[[relay.routes]]
events = "*"
to = ["sqs:{queue}"]
"""

POOL = """
[queues.{queue}]
concurrency = {concurrency}

[[queues.{queue}.handlers]]
event = "*"
handler = "benchmarks.trials.notes:Noting"
name = "note-{queue}"
options = {{ path = "{notes}", seconds = {seconds} }}
"""

UNREAD = """
[queues.{queue}]  # without handlers: nobody consumes it
"""

FIRST = "work"
"""The queue that the relay sends to."""


def head() -> str:
    """Everything that is not about relays and queues."""
    return (HEAD + DATABASE).format(project=PROJECT)


def relay(queue: str = FIRST, *, wake_up: bool = False) -> str:
    """A relay that sends every event to one queue."""
    return _kept(RELAY.format(queue=queue, wake_up=str(wake_up).lower()))


def pool(
    queue: str = FIRST, *, notes: str = "/dev/null", seconds: float = 0.0, concurrency: int = 10
) -> str:
    """A pool whose handler notes, in its inbox transaction, when it began and ended."""
    return _kept(POOL.format(queue=queue, notes=notes, seconds=seconds, concurrency=concurrency))


def unread(queue: str = FIRST) -> str:
    """A queue without a pool."""
    return UNREAD.format(queue=queue)


def _kept(text: str) -> str:
    """Braces as the place's own formatting needs them."""
    return text.replace("{", "{{").replace("}", "}}")
