"""Compare copy_block with what numba makes of a slice assignment, block sizes from 8 bytes to a kibibyte.

`python -m tests.benchmarks.block_copy` gathers blocks of one size out of 4 MiB and prints nanoseconds of a block and
gigabytes of a second of CPU time, medians of 41 rounds.
"""

from __future__ import annotations

import statistics
import time
from typing import Any, Final

import numpy as np

from broker.block_copy import copy_block
from broker.compiled import compiled_with

DATA_BYTES: Final = 4 << 20
GAP_BYTES: Final = 30
SIZES: Final = (8, 16, 100, 1_024)
ROUNDS: Final = 41


def copy_slice(out: Any, position: int, data: Any, start: int, size: int) -> None:
    """Copy as numba does by itself."""
    out[position : position + size] = data[start : start + size]


@compiled_with(copy_block, allocates=False)
def gather_blocks(out: Any, data: Any, size: int, count: int) -> None:
    """Gather blocks by copy_block."""
    for number in range(count):
        copy_block(out, number * size, data, number * (size + GAP_BYTES), size)


@compiled_with(copy_slice)
def gather_slices(out: Any, data: Any, size: int, count: int) -> None:
    """Gather blocks by slices."""
    for number in range(count):
        copy_slice(out, number * size, data, number * (size + GAP_BYTES), size)


def main() -> None:
    """Print a line for each size."""
    data = np.random.default_rng(1).integers(0, 256, DATA_BYTES, dtype=np.uint8)
    for size in SIZES:
        count = DATA_BYTES // (size + GAP_BYTES)
        shown = []
        for name, gather in (("copy_block", gather_blocks), ("slices", gather_slices)):
            out, taken = np.zeros(count * size, np.uint8), []
            for _ in range(ROUNDS):
                start = time.process_time()
                gather(out, data, size, count)
                taken.append(time.process_time() - start)
            each = statistics.median(taken) / count
            shown.append(f"{name} {each * 1e9:6.1f} ns {size / each / 1e9:5.1f} GB/s")
        print(f"{size:>5} B: {', '.join(shown)}")


if __name__ == "__main__":
    main()
