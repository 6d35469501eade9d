"""What goes wrong with the partners in every run: they are busy, and their answers get lost."""

from collections.abc import Mapping

from outboxd.demo.partners import Partners
from outboxd.demo.partners.book import Service
from outboxd.demo.partners.faults import Fault

BUSY = Fault(status=503, words="busy, try again", share=0.02, seed=1)

LOST_ANSWERS = {
    service: Fault(service=service.value, drop=True, when="after", share=0.01, seed=seed)
    for seed, service in enumerate(Service, start=2)
}
"""Done, and not told: whoever asks again must not get a second parcel."""


def script(partners: Partners) -> None:
    """Let both happen from now on."""
    for fault in (BUSY, *LOST_ANSWERS.values()):
        partners.add(fault)


def answers_lost(partners: Partners) -> Mapping[Service, int]:
    """How often each partner did what it was asked and did not say so."""
    fired = {told.fault: told.fired for told in partners.faults()}
    return {service: fired.get(fault, 0) for service, fault in LOST_ANSWERS.items()}
