"""The daemon's configurations; everything that is not set has its default, as for any user."""

from benchmarks.place import PROJECT, QUEUE

HEAD = """
import_path = ["{project}"]

[aws]
endpoint_url = "{{endpoint}}"

[http]
port = 0
"""

DATABASE = """
[database]
url = "{{dsn}}"
"""

ROUTE = """
[[relay.routes]]
events = "*"
to = ["sqs:{queue}"]

[queues.{queue}]  # without handlers: nobody consumes it
"""

HANDLER = """
[queues.{queue}]
wait_seconds = 1  # a stop waits for the last, empty poll; while there is work no poll is empty
concurrency = {concurrency}

[[queues.{queue}.handlers]]
event = "*"
handler = "benchmarks.handlers:{function}"
name = "{function}"
inbox = "{inbox}"
batch = {batch}
"""

DEFAULT_CONCURRENCY = 10

RELAY = (HEAD + DATABASE + ROUTE).format(project=PROJECT, queue=QUEUE)


def consuming(concurrency: int = DEFAULT_CONCURRENCY) -> str:
    """A pool whose handler does nothing, without an inbox and so without a database."""
    return (HEAD + HANDLER).format(
        project=PROJECT,
        queue=QUEUE,
        concurrency=concurrency,
        function="ignore",
        inbox="off",
        batch=1,
    )


def taking_effect(function: str, concurrency: int = DEFAULT_CONCURRENCY, batch: int = 1) -> str:
    """A pool whose handler inserts in an inbox transaction."""
    return (HEAD + DATABASE + HANDLER).format(
        project=PROJECT,
        queue=QUEUE,
        concurrency=concurrency,
        function=function,
        inbox="transaction",
        batch=batch,
    )
