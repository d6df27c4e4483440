"""Store rows of different lengths in two arrays, and group indexes by small numbers.

>>> rows = Ragged.of([[1, 2], [], [3]])
>>> list(rows.lists()), rows.lengths
([[1, 2], [], [3]], array([2, 0, 1]))
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array, Int64Array


@attrs.frozen(eq=False)
class Ragged:
    """Hold rows of int32: row k is values[starts[k]:starts[k + 1]]; `starts` int64[rows + 1] begins with 0."""

    starts: Int64Array
    values: Int32Array

    @classmethod
    def of(cls, rows: Iterable[Iterable[int]]) -> Ragged:
        """Return these rows as a Ragged."""
        lists = [list(row) for row in rows]
        starts = starts_of(np.fromiter(map(len, lists), np.int64, len(lists)))
        return cls(starts, np.fromiter(chain.from_iterable(lists), np.int32, count=int(starts[-1])))

    @property
    def lengths(self) -> Int64Array:
        """Return int64[rows]: the length of each row."""
        return np.diff(self.starts)

    @property
    def rows(self) -> Int32Array:
        """Return int32[values]: the row of each value."""
        return np.repeat(np.arange(len(self.starts) - 1, dtype=np.int32), self.lengths)

    def row(self, place: int) -> Int32Array:
        """Return one row."""
        return self.values[self.starts[place] : self.starts[place + 1]]

    def lists(self) -> Iterator[list[int]]:
        """Yield the rows as lists."""
        values, starts = self.values.tolist(), self.starts.tolist()
        return (values[begin:end] for begin, end in pairwise(starts))

    def take(self, order: NDArray[np.int64]) -> Ragged:
        """Return the rows that `order` names, in that order."""
        lengths = self.lengths[order]
        return Ragged(starts_of(lengths), self.values[ranges(self.starts[:-1][order], lengths)])

    def then(self, other: Ragged) -> Ragged:
        """Return rows that append to each row the row of `other` with the same index."""
        starts = starts_of(self.lengths + other.lengths)
        values = np.empty(starts[-1], np.int32)
        values[ranges(starts[:-1], self.lengths)] = self.values
        values[ranges(starts[:-1] + self.lengths, other.lengths)] = other.values
        return Ragged(starts, values)

    def where(self, kept: NDArray[np.bool_]) -> Ragged:
        """Return the rows with only the values that `kept`, bool[values], marks."""
        if kept.all():
            return self
        before = np.concatenate([[0], kept.cumsum()])
        return Ragged(before[self.starts].astype(np.int64), self.values[kept])


def grouped(keys: NDArray[Any], group_count: int) -> Ragged:
    """Return one row for each key 0..group_count-1: the indexes of that key in `keys` int[N], ascending.

    Negative keys are left out.
    """
    # numpy sorts 16-bit numbers by radix, ten times as fast as wider ones.
    narrow = keys.astype(np.int16) if group_count <= np.iinfo(np.int16).max else keys
    places = np.argsort(narrow, kind="stable").astype(np.int32)[np.count_nonzero(keys < 0) :]
    return Ragged(starts_of(np.bincount(keys[places], minlength=group_count)), places)


def ranges(firsts: Int64Array, lengths: Int64Array) -> Int64Array:
    """Return firsts[k], firsts[k] + 1, … up to lengths[k] numbers for each k, one range after another."""
    starts = starts_of(lengths)
    return np.repeat(firsts - starts[:-1], lengths) + np.arange(starts[-1])


def starts_of(lengths: NDArray[np.int64]) -> Int64Array:
    """Return int64[rows + 1]: the start of each row of these lengths, then the total."""
    return np.concatenate([np.zeros(1, np.int64), lengths.cumsum()])


def inverse(order: NDArray[Any]) -> Int64Array:
    """Return the inverse of `order`, a permutation of 0..N-1."""
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return places
