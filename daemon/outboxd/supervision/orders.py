"""What an operator may tell a running daemon, and what it answers: one JSON line each."""

from typing import TypeAlias

import msgspec

MAX_LINE_BYTES = 4096
"""With its newline; a longer one is refused."""

MAX_ANSWER_BYTES = 1 << 20
"""A configuration may have many problems."""


class PauseQueue(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="do", tag="pause"
):
    """Stop receiving from a queue."""

    queue: str


class ResumeQueue(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="do", tag="resume"
):
    """Receive from a queue again."""

    queue: str


class ReloadConfiguration(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="do", tag="reload"
):
    """Use the configuration as it is now; with `everything` restart every child for it."""

    everything: bool = False


class RestartChild(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="do", tag="restart"
):
    """Replace the process of a child, or those of a pool, one after another."""

    child: str


class DumpStacks(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="do", tag="dump"
):
    """Write the stacks of all processes to standard error."""


Order: TypeAlias = PauseQueue | ResumeQueue | ReloadConfiguration | RestartChild | DumpStacks


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whether the order was carried out, and what that meant; if not, why not."""

    ok: bool
    error: str = ""
    done: str = ""


_orders = msgspec.json.Decoder(Order)
_answers = msgspec.json.Decoder(Answer)


def read_order(line: bytes) -> Order:
    """The order of a line. Raises ValueError, with a text for whoever sent it."""
    return _orders.decode(line)


def read_answer(line: bytes) -> Answer:
    """The answer of a line. Raises ValueError."""
    return _answers.decode(line)


def write_line(message: Order | Answer) -> bytes:
    """The line of an order or an answer."""
    return msgspec.json.encode(message) + b"\n"
