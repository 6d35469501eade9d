"""Types that settings of several tables have: what a value may be, and in which unit."""

from typing import Annotated

from msgspec import Meta

# Every range is finite: a sleep of `inf` seconds and an integer of 100 bits are valid TOML, and
# each would only fail later, in a child. Patterns end in \Z because `$` lets a last newline pass.
Seconds = Annotated[float, Meta(gt=0, le=31_536_000)]
Delay = Annotated[float, Meta(gt=0, le=43_200)]
"""How long a message may be hidden: SQS allows twelve hours, counted from its receive."""
Count = Annotated[int, Meta(ge=1, le=1_000_000_000)]
Limit = Annotated[int, Meta(ge=0, le=1_000_000_000)]
"""How many at most, where 0 means any number."""
EventGlob = Annotated[str, Meta(min_length=1, max_length=255)]
QueueName = Annotated[
    str,
    Meta(
        pattern=r"^(?:[A-Za-z0-9_-]{1,80}|[A-Za-z0-9_-]{1,75}\.fifo)\Z",
        description="a queue name of 1 to 80 letters, digits, hyphens and underscores",
    ),
]
