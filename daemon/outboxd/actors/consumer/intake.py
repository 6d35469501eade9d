"""Looks into a received message: who it is for, or why it is for nobody."""

import logging

import msgspec

from outboxd.actors.consumer.actions import Action, SendLetter
from outboxd.actors.consumer.hand import Item
from outboxd.actors.consumer.leases import Leases
from outboxd.actors.consumer.pool import NO_HANDLER, Pool
from outboxd.channels.protocol import Lease
from outboxd.core.envelopes import Malformed, open_envelope
from outboxd.core.handler_table import HandlerTable
from outboxd.core.judging import RetryCause, call_again, clean, judge_unknown_type
from outboxd.core.letters import write_letter
from outboxd.core.message_plan import Delete, HideFor
from outboxd.core.messages import ReceivedMessage
from outboxd.core.outcomes import DeadLetter, DeadReason, Done, Retry
from outboxd.core.settings import HandlerSettings
from outboxd.ports.consumer_observer import Processed

log = logging.getLogger(__name__)


class Intake:
    """Everything that a body can do wrong, it does in here, and to itself alone."""

    def __init__(
        self,
        pool: Pool,
        leases: Leases,
    ) -> None:
        self._pool = pool
        self._leases = leases
        self._visibility = pool.settings.visibility_seconds
        self._table = HandlerTable(pool.settings.handlers)

    def item(self, message: ReceivedMessage, received_at: float) -> Item:
        """The message with its lease, made before anybody looks into its body."""
        lease = Lease(
            token=self._leases.next_token(),
            queue=self._pool.name,
            message_id=message.message_id,
            receipt_handle=message.receipt_handle,
            received_at=received_at,
            visibility_seconds=self._visibility,
            permitted_until=received_at + self._visibility,
        )
        return Item(lease, message)

    def look_into(self, item: Item) -> None:
        """Find the item's handlers; one that has none is given its verdict."""
        try:
            item.verdict = self._verdict(item)
        # The same fence as around a message's handlers: a bug of ours hurts one message at most.
        except Exception:
            log.exception("message not understood; this is a bug in outboxd", extra=item.facts())
            self._pool.observer.retried(NO_HANDLER, RetryCause.BUG)
            item.verdict = HideFor(call_again("", self._pool.dice).after_seconds)

    def permit(self, item: Item, waiting_seconds: float = 0.0) -> None:
        """Have the lease kept for as long as the item may wait for its turn, and then take."""
        taking = own_seconds(item) + self._pool.timing.lease_margin_seconds
        until = item.lease.received_at + waiting_seconds + taking
        if until > item.lease.permitted_until:
            item.lease = msgspec.structs.replace(item.lease, permitted_until=until)

    def _verdict(self, item: Item) -> Action | None:
        try:
            item.incoming = open_envelope(item.message)
        except Malformed as error:
            return self._reject(item, DeadLetter(DeadReason.MALFORMED, clean(str(error))))
        item.handlers = self._table.find(item.incoming.type)
        return None if item.handlers else self._unknown(item)

    def _unknown(self, item: Item) -> Action:
        error = f"no handler of queue {self._pool.name} is registered for this event type"
        match self._pool.settings.on_unknown_type:
            case "drop":
                self._pool.observer.processed(NO_HANDLER, Processed.NO_HANDLER)
                return Delete()
            case "dead_letter":
                return self._reject(item, DeadLetter(DeadReason.UNKNOWN_TYPE, error))
            case "retry":
                count = item.message.receive_count
                judgement = judge_unknown_type(
                    count, self._pool.patience[NO_HANDLER], self._pool.dice
                )
                return self._judged(item, judgement.outcome)

    def _judged(self, item: Item, outcome: Done | Retry | DeadLetter) -> Action:
        match outcome:
            case Retry(after_seconds=seconds):
                self._pool.observer.processed(NO_HANDLER, Processed.NO_HANDLER)
                self._pool.observer.retried(NO_HANDLER, RetryCause.UNKNOWN_TYPE)
                return HideFor(seconds)
            case DeadLetter():
                return self._reject(item, outcome)
            case Done():
                return Delete()

    def _reject(self, item: Item, cause: DeadLetter) -> SendLetter:
        unknown = cause.reason is DeadReason.UNKNOWN_TYPE
        self._pool.observer.processed(
            NO_HANDLER, Processed.NO_HANDLER if unknown else Processed.POISON
        )
        self._pool.observer.poison(cause.reason)
        now = self._pool.wall_clock()
        letter = write_letter(self._pool.sqs_name, item.message, item.incoming, cause, (), now)
        return SendLetter(letter, cause)


def own_seconds(item: Item) -> float:
    """How long the item's handlers may take, one after another."""
    return sum(_handler_seconds(handler) for handler in item.handlers)


def _handler_seconds(handler: HandlerSettings) -> float:
    if handler.batch == 1:
        return handler.timeout_seconds
    # It waits for company, runs in a batch, and when that fails alone.
    return handler.batch_wait_seconds + 2 * handler.timeout_seconds
