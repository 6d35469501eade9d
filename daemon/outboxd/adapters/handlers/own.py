"""What becomes of an event whose handler brings its own transaction: the mark is the judge.

Whether the effect is committed only the mark can tell, since it was in the same transaction: a
handler may fail after its COMMIT, or return from a block that rolled back. So it is looked for on
outboxd's own connection, once the handler has ended.
"""

import logging
from typing import assert_never

from outboxd.adapters.postgres.claims import Claiming, ClaimState
from outboxd.adapters.postgres.marks import DUPLICATE, OWN_FAULTS
from outboxd.core.judging import Away, Busy, Ending, Raised, Returned, TimedOut, spent
from outboxd.core.outcomes import DeadLetter, Done

log = logging.getLogger(__name__)

_NEVER_CLAIMED = (
    "handler {} returned without claiming its event: call context.claim(connection) in the "
    "transaction of the effect, also if there is nothing to do"
)
_NOT_COMMITTED = (
    "handler {} claimed its event, and returned without the mark being committed: its transaction "
    "was rolled back or left open, or its connection leads to another database than [database] url"
)
_ELSEWHERE_DONE = (
    "handler {} was told that its event is done, by a mark that is not in the database of "
    "[database] url: its connection leads to another one"
)


def judged_by_mark(ending: Ending, claiming: Claiming, marked: bool) -> Ending:
    """The ending of a call that ended in `ending`; `marked` says whether the mark is committed."""
    return _committed(ending, claiming) if marked else _uncommitted(ending, claiming)


def _committed(ending: Ending, claiming: Claiming) -> Ending:
    if claiming.state is ClaimState.ELSEWHERE:
        return DUPLICATE  # the copy has come to its end meanwhile
    duplicate = claiming.state is not ClaimState.NEW
    match ending:
        case Returned(outcome=Done()):
            return Returned(Done(duplicate=duplicate))
        case Returned(outcome=DeadLetter()) if not duplicate:
            # The handler's own word that a person is needed, maybe with a committed note of it. It
            # is not called again either way.
            return ending
        case _:
            log.warning(
                "handler failed, but its event is marked as done, with its effect",
                extra={
                    "handler": claiming.mark.handler,
                    "event_id": str(claiming.mark.event_id),
                    "error": spent(ending),
                },
            )
            return Returned(Done(duplicate=duplicate))


def _uncommitted(ending: Ending, claiming: Claiming) -> Ending:
    if claiming.state is ClaimState.ELSEWHERE:
        return Busy()  # whatever the handler has made of the error
    if claiming.connection_lost() and not _own_fault(ending):
        return Away(f"connection lost while the handler ran: {spent(ending) or 'it went on'}")
    if isinstance(ending, Returned) and isinstance(ending.outcome, Done):
        return Raised(_why_missing(claiming.state).format(claiming.mark.handler))
    return ending


def _own_fault(ending: Ending) -> bool:
    match ending:
        case Raised(sqlstate=sqlstate):
            return sqlstate in OWN_FAULTS
        case TimedOut():
            return True
        case _:
            return False


def _why_missing(state: ClaimState) -> str:
    match state:
        case ClaimState.NEVER_ASKED:
            return _NEVER_CLAIMED
        case ClaimState.NEW | ClaimState.ELSEWHERE:
            return _NOT_COMMITTED
        case ClaimState.DONE_BEFORE:
            return _ELSEWHERE_DONE
        case _:
            assert_never(state)
