"""What a message, and one call of a producer, may hold at most."""

MAX_BYTES = 1_048_576
"""The most that SQS takes in one message, attributes included. SNS and EventBridge take 262,144."""

ENVELOPE_BYTES = 1024
"""More than the keys of any envelope take, with its id, its time and the names of attributes."""

TYPE_CHARACTERS = 128
"""EventBridge's limit of a detail-type, and the table's own."""

AGGREGATE_CHARACTERS = 255
"""The table's own limit of either part of an aggregate's name."""

MAX_DEPTH = 256
"""Arrays and objects within one another. Decoders recurse: Python's end at about 1,000 levels, of
which the caller has used some, and then the message is poison to its consumer."""

MAX_EXPONENT = 308
"""Of a 64-bit float, which is what a consumer makes of a number that is no integer."""

MAX_SCALE = 16_383
"""Digits behind the point of PostgreSQL's `numeric`, which is how jsonb stores numbers."""

MANY_EVENTS = 1000
"""Of one `publish_many`: with `ordered=True` each of them may hold a lock, and the server's shared
lock table has room for some thousands (max_locks_per_transaction x max_connections)."""

MANY_BYTES = 16 * MAX_BYTES
"""Of the payloads of one `publish_many`: client and server hold several copies of the statement."""
