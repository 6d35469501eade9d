"""What goes wrong with the partners in every run: they are busy, and their answers get lost."""

from outboxd.demo.partners import Partners
from outboxd.demo.partners.faults import Fault

BUSY = Fault(status=503, words="busy, try again", share=0.02, seed=1)

LOST_ANSWER = Fault(drop=True, when="after", share=0.01, seed=2)
"""Done, and not told: whoever asks again must not get a second parcel."""


def script(partners: Partners) -> None:
    """Let both happen from now on."""
    for fault in (BUSY, LOST_ANSWER):
        partners.add(fault)


def answers_lost(partners: Partners) -> int:
    """How often a partner did what it was asked and did not say so."""
    return sum(told.fired for told in partners.faults() if told.fault.when == "after")
