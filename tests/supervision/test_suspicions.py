from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outboxd.channels.protocol import MAX_FRAME_BYTES, Address, Suspect, Welcome, encode
from outboxd.core.settings import Settings
from outboxd.supervision.suspicions import KEPT_SUSPECTS, Suspicions


def suspects(*numbers: int, padding: str = "") -> list[Suspect]:
    death = UUID(int=7)
    return [Suspect("orders", f"m-{number}{padding}", False, "signal", death) for number in numbers]


def test_suspects_add_up_until_they_are_written_down() -> None:
    suspicions = Suspicions("consumer:orders/1")

    suspicions.add(suspects(1, 2))
    suspicions.add(suspects(3))
    assert suspicions.suspects == tuple(suspects(1, 2, 3))

    suspicions.written_down()
    assert suspicions.suspects == ()


def test_the_newest_are_kept_and_it_is_told_how_many_are_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    suspicions = Suspicions("consumer:orders/1")

    suspicions.add(suspects(*range(KEPT_SUSPECTS)))
    suspicions.add(suspects(-1, -2))

    assert suspicions.suspects == tuple(suspects(*range(2, KEPT_SUSPECTS), -1, -2))
    (record,) = caplog.records
    assert vars(record)["count"] == 2


def test_a_stop_says_what_nobody_took(caplog: pytest.LogCaptureFixture) -> None:
    suspicions = Suspicions("consumer:orders/1")
    suspicions.close()
    assert caplog.records == []

    suspicions.add(suspects(1, 2, 3))
    suspicions.close()

    (record,) = caplog.records
    assert vars(record)["count"] == 3


@given(st.lists(st.integers(0, 20_000), max_size=40))
def test_the_welcome_stays_below_the_limit_of_a_frame(paddings: list[int]) -> None:
    suspicions = Suspicions("consumer:orders/1")
    added: list[Suspect] = []
    for number, padding in enumerate(paddings):
        added += suspects(number, padding="x" * padding)
        suspicions.add(added[-1:])

    kept = suspicions.suspects
    assert list(kept) == added[len(added) - len(kept) :]
    welcome = Welcome(Settings(), Address("consumer:orders/1", 1), UUID(int=1), (), kept)
    assert len(encode(welcome)) < MAX_FRAME_BYTES // 2
