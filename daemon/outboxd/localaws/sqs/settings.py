"""What can be set on a queue, with the defaults and limits of AWS."""

import msgspec

from outboxd.localaws.sqs.redrive import RedriveAllowPolicy, RedrivePolicy

MAX_VISIBILITY_SECONDS = 43_200
MAX_MESSAGE_BYTES = 1_048_576
MAX_DELAY_SECONDS = 900
MAX_WAIT_SECONDS = 20


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The attributes of a queue that can be set; frozen, a change makes a new one."""

    fifo: bool = False
    delay_seconds: int = 0
    maximum_message_size: int = MAX_MESSAGE_BYTES
    retention_seconds: int = 345_600
    receive_wait_seconds: int = 0
    visibility_seconds: int = 30
    policy: str = ""
    redrive: RedrivePolicy | None = None
    redrive_allow: RedriveAllowPolicy | None = None
    # Encryption is accepted and remembered only.
    kms_key: str = ""
    kms_reuse_seconds: int = 300
    sse_managed: bool = True
    # FIFO queues only.
    content_based_deduplication: bool = False
    deduplication_scope: str = "queue"
    fifo_throughput_limit: str = "perQueue"

    @property
    def deduplicates_per_group(self) -> bool:
        return self.deduplication_scope == "messageGroup"
