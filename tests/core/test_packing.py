from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from outboxd.core.packing import Packer, PackLimits

LIMITS = PackLimits(entries=10, pack_bytes=100, entry_bytes=100)

sizes = st.lists(st.integers(1, 100), max_size=60)


def packer_of(sizes: list[int]) -> Packer[int]:
    packer: Packer[int] = Packer(LIMITS)
    for place, size in enumerate(sizes):
        packer.add(place, size)
    return packer


@given(sizes, st.integers(1, 12))
def test_packs_keep_the_order_and_the_limits(sizes: list[int], at_most: int) -> None:
    packer = packer_of(sizes)
    packs = []
    while pack := packer.take(at_most):
        packs.append(pack)

    assert [place for pack in packs for place in pack] == list(range(len(sizes)))
    assert all(len(pack) <= min(at_most, LIMITS.entries) for pack in packs)
    assert all(sum(sizes[place] for place in pack) <= LIMITS.pack_bytes for pack in packs)


@given(sizes)
def test_a_pack_is_closed_only_by_what_does_not_fit(sizes: list[int]) -> None:
    packer = packer_of(sizes)
    packs = []
    while pack := packer.take(LIMITS.entries):
        packs.append(pack)

    for pack, following in pairwise(packs):
        content = sum(sizes[place] for place in pack) + sizes[following[0]]
        assert len(pack) == LIMITS.entries or content > LIMITS.pack_bytes


@given(sizes)
def test_full_means_that_waiting_makes_the_next_pack_no_larger(sizes: list[int]) -> None:
    packer = packer_of(sizes)
    full = packer.full
    packer.add(len(sizes), 1)
    pack = packer.take(LIMITS.entries)

    assert not full or len(sizes) not in pack


@given(sizes, st.sets(st.integers(0, 59)))
def test_what_is_withdrawn_is_gone_and_the_rest_keeps_its_order(
    sizes: list[int], chosen: set[int]
) -> None:
    packer = packer_of(sizes)

    assert packer.withdraw(lambda place: place in chosen) == sorted(chosen & set(range(len(sizes))))
    rest = []
    while pack := packer.take(LIMITS.entries):
        rest += pack
    assert rest == [place for place in range(len(sizes)) if place not in chosen]
    assert len(packer) == 0
    assert not packer.full


def test_an_item_above_every_limit_leaves_alone() -> None:
    packer = packer_of([500, 1])

    assert packer.take(10) == [0]
    assert packer.take(10) == [1]


def test_without_room_nothing_leaves() -> None:
    assert packer_of([1]).take(0) == []
