"""What all programs of peers are told, and the events that producers are given."""

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

QUEUE = os.environ["BENCHMARK_QUEUE"]
DSN = os.environ["BENCHMARK_DSN"]
ENDPOINT = os.environ["AWS_ENDPOINT_URL"]
REGION = os.environ["AWS_REGION"]

HOLD_SECONDS = 900
"""The delay that the queue gives to what is sent; clients that name a delay have to name this."""


def events() -> Iterator[dict[str, Any]]:
    """What is to be enqueued."""
    return map(json.loads, sys.stdin)
