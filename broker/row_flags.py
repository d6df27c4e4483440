"""Find and count flags in the rows of a matrix, and find or count ids in its rows.

Example: two partitions, the second without a flag:

    >>> flags = np.array([[False, True], [False, False]])
    >>> any_in_row(flags).tolist(), count_in_row(flags).tolist()
    ([True, False], [1, 0])
    >>> first_in_row(np.array([[4, 5], [6, 7]]), flags).tolist()
    [5, -1]
    >>> members(np.array([[4, 5], [6, 7]]), np.array([[5, 6], [5, 6]])).tolist()
    [[False, True], [True, False]]
    >>> distinct_in_row(np.array([[4, 4, -1], [2, 0, 2]])).tolist()
    [1, 2]
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

_NARROW_MAX: Final = 32  # With more columns numpy's reduction of a row pays for itself.
_PAIRED_MAX: Final = 4  # With more columns sorting a row takes less than comparing each two.

Whole = TypeVar("Whole", bound=np.signedinteger[Any])


def any_in_row(flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which rows of `flags` bool[P, W] have a flag set, bool[P]."""
    if flags.shape[1] > _NARROW_MAX:
        return np.asarray(flags.any(axis=1))
    if not flags.shape[1]:
        return np.zeros(flags.shape[0], dtype=np.bool_)
    found = flags[:, 0].copy()
    for column in range(1, flags.shape[1]):
        found |= flags[:, column]
    return found


def count_in_row(flags: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return how many flags are set in each row of `flags` bool[P, W], int64[P]."""
    if flags.shape[1] > _NARROW_MAX:
        return np.asarray(np.count_nonzero(flags, axis=1), dtype=np.int64)
    if not flags.shape[1]:
        return np.zeros(flags.shape[0], dtype=np.int64)
    found = flags[:, 0].astype(np.int64)
    for column in range(1, flags.shape[1]):
        found += flags[:, column]
    return found


def count_each(values: NDArray[np.signedinteger[Any]], count: int) -> NDArray[np.int64]:
    """Return how often each of 0..count-1 is among `values`, int64[count]; negative ones are padding."""
    return np.bincount(values[values >= 0], minlength=count).astype(np.int64, copy=False)


def first_in_row(rows: NDArray[Whole], flags: NDArray[np.bool_]) -> NDArray[Whole]:
    """Return the first flagged entry of each row of `rows` [P, W], [P] of the same type; -1 where none is flagged."""
    found = np.full(rows.shape[0], -1, dtype=rows.dtype)
    for column in range(rows.shape[1] - 1, -1, -1):
        found = np.where(flags[:, column], rows[:, column], found)
    return found


def members(matrix: NDArray[np.signedinteger[Any]], of: NDArray[np.signedinteger[Any]]) -> NDArray[np.bool_]:
    """Return which entries of `matrix` are in the same row of `of`, bool of the shape of `matrix`; -1 matches -1."""
    if of.shape[1] > _NARROW_MAX:  # By one sort of all ids, each with its row before it.
        row = np.arange(matrix.shape[0], dtype=np.int64)[:, None] << 33
        return np.isin(row + matrix, row + of)
    found = np.zeros(matrix.shape, dtype=np.bool_)
    for column in range(of.shape[1]):
        found |= matrix == of[:, column, None]
    return found


def distinct_in_row(rows: NDArray[np.signedinteger[Any]]) -> NDArray[np.int64]:
    """Return how many distinct values each row of `rows` [P, W] has, int64[P]; negative ones are padding."""
    if not rows.shape[1]:
        return np.zeros(rows.shape[0], dtype=np.int64)
    if rows.shape[1] <= _PAIRED_MAX:
        columns, found = [column.copy() for column in rows.T], np.zeros(rows.shape[0], dtype=np.int64)
        for place, column in enumerate(columns):
            new = column >= 0
            for other in columns[:place]:
                new &= column != other
            found += new
        return found
    ordered = np.sort(rows, axis=1)
    new = ordered >= 0
    new[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    return count_in_row(new)
