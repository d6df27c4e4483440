"""A kernel's copy of a block is what the plain function copies: those bytes, and none beside them."""

from __future__ import annotations

import numpy as np
import pytest

from broker.block_copy import copy_block
from broker.compiled import compiled_with
from broker.ids import INT32_MAX


@compiled_with(copy_block, allocates=False)
def copy_in_a_kernel(out, position, data, start, size):  # type: ignore[no-untyped-def]  # Numba finds the types.
    copy_block(out, position, data, start, size)


SIZES = (0, 1, 7, 8, 15, 16, 17, 63, 64, 65, 100, 1_024, 5_000)


@pytest.mark.parametrize("size", SIZES)
def test_the_block_is_copied_and_nothing_beside_it(size: int) -> None:
    data = np.random.default_rng(size).integers(1, 256, 6_000, dtype=np.uint8)
    data.flags.writeable = False  # As the bytes of a mapped file are.
    for position, start in ((0, 0), (3, 0), (0, 5), (17, 900)):
        found, wanted = np.zeros((2, position + size + 9), np.uint8)
        copy_in_a_kernel(found, position, data, start, np.int32(size))
        copy_block(wanted, position, data, start, size)
        assert found.tolist() == wanted.tolist()
        assert found[position : position + size].tolist() == data[start : start + size].tolist()
        assert not found[:position].any()
        assert not found[position + size :].any()


@pytest.mark.deep
def test_a_block_beyond_two_gibibytes_is_found() -> None:
    data = np.zeros(INT32_MAX + 200, np.uint8)  # Untouched memory, which the system does not give out.
    data[INT32_MAX + 10 : INT32_MAX + 20] = range(1, 11)
    out = np.zeros(12, np.uint8)
    copy_in_a_kernel(out, 1, data, INT32_MAX + 10, 10)
    assert out.tolist() == [0, *range(1, 11), 0]
