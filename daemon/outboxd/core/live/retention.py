"""How long queues keep messages and letters, against each other and against the inbox."""

from collections.abc import Iterator

from outboxd.core.live.attributes import days, number
from outboxd.core.live.facts import Attributes
from outboxd.core.live.finding import Code, Finding
from outboxd.core.provisioning import RETENTION
from outboxd.core.settings import Settings, is_fifo


def retention_findings(
    settings: Settings, name: str, attributes: Attributes, letter_attributes: Attributes
) -> Iterator[Finding]:
    """Of the configured queue `name` and its dead-letter queue."""
    called, letters = settings.sqs_queue_name(name), settings.dead_letter_name(name)
    kept, letters_kept = number(attributes, RETENTION), number(letter_attributes, RETENTION)
    if not is_fifo(called):
        yield from _letters_kept(f"queue {letters}", called, kept, letters_kept)
    yield from _inbox(settings, name, kept + letters_kept)


def _letters_kept(subject: str, source: str, kept: int, letters_kept: int) -> Iterator[Finding]:
    """Only standard queues: a FIFO letter's age counts from its arrival."""
    found = (
        f"it keeps letters for {days(letters_kept)} days, and {source} its messages for "
        f"{days(kept)}; a letter that SQS moves keeps the age of its message"
    )
    if letters_kept < kept:
        yield Finding(
            Code.DEAD_LETTER_RETENTION,
            subject,
            found,
            "a message that has waited for long is deleted on arrival, before anybody sees it",
            "raise dead_letter_retention_days, at best to 14, and run `outboxd provision`",
        )
    elif letters_kept == kept:
        yield Finding(
            Code.DEAD_LETTER_HURRY,
            subject,
            found,
            "a message that has waited for long is deleted soon after it arrives",
            "raise dead_letter_retention_days, at best to 14, and run `outboxd provision`",
        )


def _inbox(settings: Settings, name: str, lasting: int) -> Iterator[Finding]:
    """A mark has to outlive all ways in which its message may come back."""
    kept = settings.inbox.retention_days * 86_400
    marks = any(each.inbox != "off" for each in settings.queues[name].handlers)
    if not marks or kept >= lasting:
        return
    found = (
        f"inbox marks are kept for {settings.inbox.retention_days:g} days, but a message can come "
        f"back for {days(lasting)} days: as long as this queue and then its dead-letter queue keep "
        "it"
    )
    if settings.inbox.allow_shorter_retention:
        yield Finding(
            Code.INBOX_SHORT,
            f"queue {settings.sqs_queue_name(name)}",
            found,
            "a late redrive runs handlers a second time (allow_shorter_retention is on)",
            "raise [inbox] retention_days, or keep messages for less long",
        )
    else:
        yield Finding(
            Code.INBOX_STRETCHED,
            f"queue {settings.sqs_queue_name(name)}",
            found,
            "the daemon keeps the marks for as long as that, so processed_events is larger than "
            "configured",
            "raise [inbox] retention_days, so that the file says what happens",
        )
