"""How often an effect outside of the database may have been repeated, and why.

A call whose answer nobody heard is made again, under the same key: each answer that a partner lost
on purpose explains one repetition, and each kill of a pool as many as it makes calls at a time.
"""

from collections.abc import Mapping

import msgspec

from outboxd.core.settings import Settings
from outboxd.demo.flows import Flow
from outboxd.demo.partners.book import Service

QUEUES = {
    "emails_sent": "notification-events",
    "whatsapp_sent": "notification-events",
    "push_sent": "notification-events",
    "shipments_requested": "shipping-events",
    "confirmations_sent": "jobs",
}
"""Where the calls of a flow are made."""

SERVICES = {
    "whatsapp_sent": Service.WHATSAPP,
    "push_sent": Service.PUSH,
    "shipments_requested": Service.COURIER,
}
"""Whom they are made to; mail servers lose no answers here."""


def explain(
    flows: Mapping[str, Flow],
    *,
    settings: Settings,
    kills: Mapping[str, int],
    answers_lost: Mapping[Service, int],
) -> dict[str, Flow]:
    """The flows, with the most that kills (by child) and lost answers account for."""
    return {
        name: msgspec.structs.replace(
            flow,
            explained=_by_kills(QUEUES[name], settings, kills)
            + (answers_lost[SERVICES[name]] if name in SERVICES else 0),
        )
        if name in QUEUES
        else flow
        for name, flow in flows.items()
    }


def _by_kills(queue: str, settings: Settings, kills: Mapping[str, int]) -> int:
    killed = sum(
        number for child, number in kills.items() if child.startswith(f"consumer:{queue}/")
    )
    return killed * settings.queues[queue].concurrency
