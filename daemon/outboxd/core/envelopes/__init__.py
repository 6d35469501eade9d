"""What a message's body says: from any known envelope to one event.

A service that forwards an event puts it into an envelope of its own, so envelopes may lie in one
another. `opening` takes them off one by one; each of the other modules knows one kind.
"""

from outboxd.core.envelopes.identity import NAMESPACE, event_id
from outboxd.core.envelopes.incoming import Incoming, Malformed
from outboxd.core.envelopes.opening import MAX_UNWRAPPINGS, open_envelope

__all__ = ["MAX_UNWRAPPINGS", "NAMESPACE", "Incoming", "Malformed", "event_id", "open_envelope"]
