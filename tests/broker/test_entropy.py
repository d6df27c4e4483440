"""The generators: ours is fair and reproducible, the other is Java's to the bit."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.entropy import JavaRandom, SplitMix64, derive
from broker.errors import UsageError

LONGS = st.integers(-(2**63), 2**63 - 1)
BOUNDS = st.integers(1, 2**31 - 1)
PINNED = [6839728766377637706, 5377788519015011818, 1572711796873405683, 8909791794446758264]


def test_java_random_gives_the_numbers_that_java_documents_for_seed_42() -> None:
    random = JavaRandom(42)
    assert [random.next_int() for _ in range(3)] == [-1170105035, 234785527, -1360544799]


def test_split_mix_gives_the_published_stream_of_seed_0() -> None:
    # The high halves of e220a8397b1dcdaf, 6e789e6aa1b965f4, 06c45d188009454f.
    random = SplitMix64(0)
    assert [random.next_int() & 0xFFFFFFFF for _ in range(3)] == [0xE220A839, 0x6E789E6A, 0x06C45D18]


@given(LONGS, st.lists(BOUNDS, max_size=20))
def test_bounded_draws_stay_below_the_bound_and_repeat_with_the_seed(seed: int, bounds: list[int]) -> None:
    for make in (JavaRandom, SplitMix64):
        drawn = [make(seed).next_int_bound(bound) for bound in bounds]
        assert all(0 <= value < bound for value, bound in zip(drawn, bounds, strict=True))
        assert drawn == [make(seed).next_int_bound(bound) for bound in bounds]


@given(LONGS, st.integers(0, 50))
def test_a_state_that_is_read_and_set_goes_on_with_the_same_stream(seed: int, steps: int) -> None:
    first, second = JavaRandom(seed), JavaRandom(0)
    for _ in range(steps):
        first.next_int()
    second.state = first.state
    assert [first.next_int() for _ in range(5)] == [second.next_int() for _ in range(5)]


@pytest.mark.parametrize("make", [JavaRandom, SplitMix64])
def test_a_shuffle_reaches_every_order_about_equally(make: type[JavaRandom] | type[SplitMix64]) -> None:
    random, seen = make(7), Counter[tuple[int, ...]]()
    for _ in range(6000):
        items = [0, 1, 2]
        random.shuffle(items)
        seen[tuple(items)] += 1
    assert len(seen) == 6
    assert all(850 < count < 1150 for count in seen.values()), seen


@pytest.mark.parametrize("make", [JavaRandom, SplitMix64])
@pytest.mark.parametrize("bound", [0, -1, 2**31])
def test_a_bound_that_java_has_not_is_refused_and_draws_nothing(
    make: type[JavaRandom] | type[SplitMix64], bound: int
) -> None:
    random = make(1)
    with pytest.raises(UsageError, match=rf"^bound is {bound}; allowed are whole numbers from 1 to 2147483647$"):
        random.next_int_bound(bound)
    assert random.next_int() == make(1).next_int()


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
def test_seeds_and_keys_are_java_longs(value: int) -> None:
    allowed = "allowed are whole numbers from -9223372036854775808 to 9223372036854775807"
    for make in (JavaRandom, SplitMix64, derive):
        with pytest.raises(UsageError, match=f"^seed is {value}; {allowed}$"):
            make(value)
    with pytest.raises(UsageError, match=f"^key is {value}; {allowed}$"):
        derive(0, value)


@pytest.mark.parametrize("state", [-1, 2**48])
def test_a_state_outside_48_bits_is_refused(state: int) -> None:
    random = JavaRandom(1)
    with pytest.raises(UsageError, match=f"^generator state is {state}; allowed are whole numbers from 0 to"):
        random.state = state


def test_derived_seeds_are_pinned_as_fleets_depend_on_them() -> None:
    assert [derive(42), derive(42, 0), derive(42, 1), derive(42, 1, 0)] == PINNED
