"""Turn Arrow lists of broker ids into padded matrices, without a Python object per partition.

A list has at most `LIST_LENGTH_MAX` values, and a matrix at most `CELLS_MAX` cells: one absurd row must not take the
memory of an executor.

    >>> padded(pa.array([[1, 2], [3]], pa.list_(pa.int32())), "replicas").tolist()
    [[1, 2], [3, -1]]
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from broker.cluster import PAD, Int64Array
from broker.errors import UsageError

LIST_LENGTH_MAX: Final = 32_767  # Kafka's replication factor is a short.
CELLS_MAX: Final = 1 << 28  # 1 GiB of broker ids.
LONG_MAX: Final = (1 << 63) - 1
INT_MAX: Final = (1 << 31) - 1  # Kafka's ids of brokers and numbers of partitions are ints.
ID_BITS: Final = 32  # A number of a row or of a cluster, and a broker's id, are one number: (place << ID_BITS) | id.


def padded(lists: Any, name: str, most: int = LONG_MAX) -> NDArray[np.integer[Any]]:
    """Return the lists as the rows of a matrix of their numbers' type, -1 where a list is shorter or null.

    Raises UsageError for a value in a list that is null, negative or above `most`, and for lists that are too long.
    """
    counts, values = list_counts(lists), lists.flatten()
    if values.null_count:
        raise UsageError(f"a list in column {name!r} has a null in it")
    flat = values.to_numpy(zero_copy_only=False)
    if flat.size and int(flat.min()) < 0:
        raise UsageError(f"a list in column {name!r} has the value {int(flat.min())}; allowed is 0 or more")
    refuse_wide(flat, f"a list in column {name!r}", most)
    width = int(counts.max(initial=0))
    if width > LIST_LENGTH_MAX or width * counts.size > CELLS_MAX:
        raise UsageError(
            f"column {name!r} has {counts.size:,} lists, the longest of {width:,} values; allowed are "
            f"{LIST_LENGTH_MAX:,} values, and {CELLS_MAX:,} for the longest times the number of lists"
        )
    matrix = np.full((counts.size, width), PAD, dtype=flat.dtype)
    matrix[np.arange(width) < counts[:, None]] = flat
    return matrix


def refuse_wide(numbers: Any, where: str, most: int = INT_MAX) -> None:
    """Raise UsageError for a number above `most`."""
    if numbers.size and int(numbers.max()) > most:
        raise UsageError(f"{where} has the value {int(numbers.max())}; allowed are numbers up to {most:,}")


def list_counts(lists: Any) -> Int64Array:
    """Return the number of values in each list, 0 where it is null."""
    counts: Int64Array = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return counts


def numbers_of(column: Any, null: int) -> Int64Array:
    """Return a column of whole numbers as int64, with the number `null` in place of nulls."""
    numbers = pc.fill_null(whole(column).cast(pa.int64()), null).to_numpy(zero_copy_only=False)
    return np.asarray(numbers, np.int64)


def whole(column: Any) -> Any:
    """Return a column as one array, its chunks joined."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def mask_of(column: Any) -> NDArray[np.bool_]:
    """Return a boolean column without nulls as a NumPy array, which must not be written to."""
    mask: NDArray[np.bool_] = whole(column).to_numpy(zero_copy_only=False)
    return mask
