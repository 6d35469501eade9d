"""What the extender tells whoever counts."""

from typing import Protocol


class ExtenderObserver(Protocol):
    """Facts of the extender, in the past tense; `queue` is a name in the configuration."""

    def extended(self, queue: str, slack_seconds: float) -> None:
        """A lease was extended when `slack_seconds` were left of it."""

    def extension_refused(self, queue: str) -> None:
        """SQS said that the receipt is not ours."""

    def extension_failed(self, queue: str) -> None:
        """An extension did not succeed, or nobody knows; it is tried again."""

    def limit_reached(self, queue: str) -> None:
        """A lease may not be extended any further."""

    def lease_lost(self, queue: str) -> None:
        """A lease ended under a running handler: a second delivery is likely."""

    def given_back(self, queue: str) -> None:
        """A dead owner's message was made visible again."""

    def giving_back_failed(self, queue: str) -> None:
        """A message could not be made visible; it is tried again while its lease lasts."""

    def tracking(self, queue: str, leases: int) -> None:
        """So many leases are being extended now."""
