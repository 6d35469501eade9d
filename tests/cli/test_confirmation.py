"""Only a clear yes of somebody who is there, or --yes, lets a destructive command go on."""

import io
import os
import signal
from collections.abc import Callable
from functools import partial

import pytest

from outboxd.cli.confirmation import NotConfirmed, confirm, confirm_by_name
from outboxd.cli.long_work import stopped_by_sigint


class Terminal(io.StringIO):
    """A person who types one line."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("answer", ["y\n", "YES\n", " yes \n"])
def test_a_yes_goes_on(answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(answer))

    confirm("dropping everything", yes=False)


@pytest.mark.parametrize("answer", ["", "\n", "n\n", "yep\n"])
def test_anything_else_does_not(answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(answer))

    with pytest.raises(NotConfirmed, match="nothing was done"):
        confirm("dropping everything", yes=False)


def test_the_question_is_not_among_the_results(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))

    confirm("dropping everything", yes=False)

    assert capsys.readouterr() == ("", "dropping everything. Go on? [y/N] ")


def test_nobody_is_asked_when_nobody_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))

    with pytest.raises(NotConfirmed, match="give --yes"):
        confirm("dropping everything", yes=False)


def test_the_option_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)

    confirm("dropping everything", yes=True)
    with pytest.raises(NotConfirmed):
        confirm("dropping everything", yes=False)


class Undecided:
    """A person who presses Ctrl-C at the question, and would have said yes to the next one."""

    def isatty(self) -> bool:
        return True

    def readline(self) -> str:
        os.kill(os.getpid(), signal.SIGINT)
        return "y\n"


@pytest.mark.parametrize(
    "ask", [confirm, partial(confirm_by_name, name="orders")], ids=["yes", "name"]
)
def test_a_ctrl_c_at_the_question_is_an_answer(
    monkeypatch: pytest.MonkeyPatch, ask: Callable[..., None]
) -> None:
    monkeypatch.setattr("sys.stdin", Undecided())
    before = signal.getsignal(signal.SIGINT)

    with stopped_by_sigint() as stopping:
        with pytest.raises(KeyboardInterrupt):
            ask("deleting everything", yes=False)
        assert not stopping()

    assert signal.getsignal(signal.SIGINT) is before
