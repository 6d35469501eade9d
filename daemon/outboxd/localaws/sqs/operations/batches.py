"""What the three batch operations have in common."""

from outboxd.localaws.errors import AwsError
from outboxd.localaws.sqs.responses import Failed


def failed_entry(entry_id: str, refusal: AwsError) -> Failed:
    """An entry's refusal; in batches the code is the legacy one, as in `Error.Code`."""
    return Failed(entry_id, refusal.sender_fault, refusal.code, refusal.message)
