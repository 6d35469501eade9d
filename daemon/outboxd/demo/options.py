"""What a run of the demo is asked for."""

from msgspec import Struct

SHORTEST_TIMEOUT_SECONDS = 60.0
SETTLING_SECONDS = 40.0
"""Last retries and two quiet looks, on a slow machine."""

KILLING_SECONDS = 60.0
"""What killed children cost: restarts, and messages that come back when their time is over."""


class DemoOptions(Struct, frozen=True, kw_only=True):
    """`orders` is None for a shop that stays open until Ctrl-C."""

    orders: int | None = None
    exit_when_drained: bool = False
    rate: float = 10.0
    kill_every_seconds: float | None = None
    timeout_seconds: float | None = None
    aws_endpoint: str | None = None
    database_url: str | None = None
    seed: int = 1
    port: int = 0

    @property
    def deadline_seconds(self) -> float:
        """How long a run that ends by itself may take, from the moment the shop opens."""
        if self.timeout_seconds is not None:
            return self.timeout_seconds
        shopping = (self.orders or 0) / self.rate
        killing = KILLING_SECONDS if self.kill_every_seconds is not None else 0.0
        return max(SHORTEST_TIMEOUT_SECONDS, 3 * shopping + SETTLING_SECONDS) + killing
