"""Message groups: the order of FIFO queues and topics, and the fairness of standard ones."""

import hashlib
import re

from outboxd.core.outbox import StoredEvent

_GROUP_ID = re.compile(r"[A-Za-z0-9!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]{1,128}\Z")
"""What SQS and SNS take as a MessageGroupId."""


def group_of(event: StoredEvent) -> str:
    """The aggregate as a message group, hashed when AWS would not take it as it is."""
    group = f"{event.aggregate_type}/{event.aggregate_id}"
    if _GROUP_ID.match(group):
        return group
    return hashlib.sha256(group.encode(errors="surrogatepass")).hexdigest()[:32]
