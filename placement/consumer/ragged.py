"""Store rows of different lengths in two arrays, and sort stably by small numbers.

What it decides: the form in which subscriptions, claims and assignments are held: all values behind each other,
and where each row starts. A million partitions on two thousand members are two arrays, not two thousand lists.

Example:

    >>> rows = Ragged.of([[1, 2], [], [3]])
    >>> list(rows.lists()), rows.lengths
    ([[1, 2], [], [3]], array([2, 0, 1]))
    >>> rows.row(0)
    array([1, 2], dtype=int32)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled


@attrs.frozen(eq=False)
class Ragged:
    """Hold rows of int32: row k is values[starts[k]:starts[k + 1]]; `starts` int64[rows + 1] begins with 0."""

    starts: Int64Array
    values: Int32Array

    @classmethod
    def of(cls, rows: Iterable[Iterable[int]]) -> Ragged:
        """Return these rows as a Ragged."""
        lists = [list(row) for row in rows]
        return cls.of_lengths([len(row) for row in lists], chain.from_iterable(lists))

    @classmethod
    def of_lengths(cls, lengths: Iterable[int], values: Iterable[int]) -> Ragged:
        """Return rows of these lengths, filled with the values in order."""
        starts = _starts(np.fromiter(lengths, np.int64))
        return cls(starts, np.fromiter(values, np.int32, count=int(starts[-1])))

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
        starts = _starts(self.lengths[order])
        values = np.empty(starts[-1], np.int32)
        copy_rows(self.starts, self.values, order, starts, values)
        return Ragged(starts, values)

    def then(self, other: Ragged) -> Ragged:
        """Return rows that append to each row the row of `other` with the same index."""
        starts = _starts(self.lengths + other.lengths)
        values = np.empty(starts[-1], np.int32)
        every = np.arange(len(starts) - 1)
        copy_rows(self.starts, self.values, every, starts, values)
        copy_rows(other.starts, other.values, every, starts[:-1] + self.lengths, values)
        return Ragged(starts, values)

    def where(self, kept: NDArray[np.bool_]) -> Ragged:
        """Return the rows with only the values that `kept`, bool[values], marks."""
        if kept.all():
            return self
        before = np.concatenate([[0], kept.cumsum()])
        return Ragged(before[self.starts].astype(np.int64), self.values[kept])


def grouped(keys: Int32Array, group_count: int) -> Ragged:
    """Return one row for each key 0..group_count-1: the indexes of that key in `keys` int32[N], ascending.

    Negative keys are left out.
    """
    starts = np.zeros(group_count + 1, np.int64)
    places = np.empty(len(keys), np.int32)
    count_sort(np.ascontiguousarray(keys, np.int32), starts, places)
    return Ragged(starts, places[: starts[-1]])


@compiled
def count_sort(keys: Int32Array, starts: Int64Array, places: Int32Array) -> None:
    """Fill `starts` int64[G + 1], zero at first, and `places` int32[N] with the indexes of each key in 0..G-1.

    The readable twin is numpy's `argsort(keys, kind="stable")` of the keys that are not negative.
    """
    for key in keys:
        if key >= 0:
            starts[key + 1] += 1
    for group in range(1, len(starts)):
        starts[group] += starts[group - 1]
    next_place = starts[:-1].copy()
    for place in range(len(keys)):
        key = keys[place]
        if key >= 0:
            places[next_place[key]] = place
            next_place[key] += 1


@compiled
def copy_rows(
    starts: Int64Array, values: Int32Array, order: Int64Array, target_starts: Int64Array, target: Int32Array
) -> None:
    """Copy rows order[k] of `starts` and `values` to `target`, beginning at target_starts[k].

    The readable twin is `target[target_starts[k]:][:length] = values[starts[order[k]]:][:length]` for each k.
    """
    for place in range(len(order)):
        begin, end = starts[order[place]], starts[order[place] + 1]
        shift = target_starts[place] - begin
        for source in range(begin, end):
            target[source + shift] = values[source]


def _starts(lengths: NDArray[np.int64]) -> Int64Array:
    """Return int64[rows + 1]: the start of each row of these lengths, then the total."""
    return np.concatenate([np.zeros(1, np.int64), lengths.cumsum()])


def inverse(order: NDArray[Any]) -> Int64Array:
    """Return the inverse of `order`, a permutation of 0..N-1."""
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return places
