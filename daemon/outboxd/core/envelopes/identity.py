"""Ids of events: UUIDs as they are, and everything else as a UUID that is always the same.

An id is unique within its source only, so the source is part of what it becomes:

- a plain event or a plain job: its type, since producers that number their rows use the same ids
  for different types;
- an EventBridge event whose detail is a payload: the source and the detail-type, for that reason;
- CloudEvents: the `source` attribute ("producers must ensure that source + id is unique", 1.0.2).

An SNS topic is never the source: with raw delivery nobody can tell which it was, and the same event
must not become another one on the way.
"""

from uuid import UUID, uuid5

NAMESPACE = UUID("b4a9a4b5-0c0e-5d7e-9a57-6f1f0f0f6d27")
"""Root of the namespaces of ids that are no UUIDs: uuid5(uuid5(NAMESPACE, source), id)."""


def event_id(text: str, source: str) -> UUID:
    """The id as a UUID; one that is none becomes uuid5 in the namespace of its source."""
    try:
        return UUID(text)
    except ValueError:
        return uuid5(uuid5(NAMESPACE, source), text)
