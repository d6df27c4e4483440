"""Memory for columns: used again when nobody holds it, and never before."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from log.batches.header_table import KEPT_MAX, ColumnMemory
from log.batches.record_columns import ByteArray


def address(array: ByteArray) -> int:
    return int(array.__array_interface__["data"][0])


@pytest.mark.parametrize(
    "part",
    [
        lambda array: array[5:6],
        lambda array: array.view(np.int64),
        lambda array: array.reshape(10, 100)[:, 1],
        lambda array: array.data,
        lambda array: memoryview(array)[3:4],
        lambda array: np.frombuffer(array.data, np.int32)[1:],
    ],
)
def test_memory_of_which_a_part_is_held_is_not_used_again(part: Callable[[ByteArray], object]) -> None:
    memory = ColumnMemory()
    array = memory.octets(1000)
    first, held = address(array), part(array)
    del array
    other = memory.octets(1000)
    assert address(other) != first
    del held
    assert {address(memory.octets(1000))} == {first}


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 3 * KEPT_MAX)), max_size=60))
def test_whatever_is_held_stays_as_it_is(steps: list[tuple[int, int]]) -> None:
    """Each step takes an array, fills it with its number, and lets go of one of those that are held."""
    memory = ColumnMemory()
    held: dict[int, ByteArray] = {}
    for number, (size_bytes, dropped) in enumerate(steps):
        array = memory.octets(size_bytes)
        array[:] = number
        held[number] = array
        held.pop(number - dropped, None)
        del array
    assert all((array == number).all() for number, array in held.items())
