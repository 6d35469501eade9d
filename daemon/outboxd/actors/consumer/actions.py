"""What can be done with a message once its handlers have ended."""

from typing import TypeAlias

import msgspec

from outboxd.core.letters import Letter
from outboxd.core.message_plan import DeadHandler, Delete, HideFor
from outboxd.core.outcomes import DeadLetter


class SendLetter(msgspec.Struct, frozen=True):
    """Send the letter, then delete. `dead` is empty when the message came to no handler."""

    letter: Letter
    cause: DeadLetter
    dead: tuple[DeadHandler, ...] = ()


Action: TypeAlias = Delete | HideFor | SendLetter
