"""The shop's partners, played: a courier, WhatsApp and push, over HTTP, with faults on cue.

`python -m outboxd.demo.partners --port 0` serves them and prints its address on the first line;
`running_partners()` does that in a process of its own, for the demo and for tests.
"""

from outboxd.demo.partners.client import Partners
from outboxd.demo.partners.process import running_partners

__all__ = ["Partners", "running_partners"]
