"""Gather partitions in columns while a dump is read, and build one PartitionTable from them.

Closing checks them: each partition once (the first line stays), and no matrix of more than `MATRIX_CELLS_MAX` cells, so
that one absurdly long list cannot widen a million rows.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import MATRIX_COLUMNS, PAD, Int32Array, Int64Array, PartitionTable
from broker.errors import InputError
from placement.spec import PARTITION_COUNT_MAX

MATRIX_CELLS_MAX: Final = 100_000_000  # 400 MB of int32: a million partitions with a hundred replicas each.


@attrs.frozen(kw_only=True, eq=False)
class Chunk:
    """Hold some rows in columns: `line`, `topic_index`, `partition_ids`, and matrices by name with -1 pads."""

    line: Int64Array
    topic_index: Int32Array
    partition_ids: Int32Array
    leader: Int32Array | None
    matrices: dict[str, Int32Array]


@attrs.frozen(kw_only=True)
class Row:
    """Hold one partition; a list is None where the dump lacks it, and `line` may be any ordinal."""

    line: int
    topic: str
    partition: int
    replicas: tuple[int, ...]
    leader: int | None = None
    isr: tuple[int, ...] | None = None
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None
    offline: tuple[int, ...] | None = None
    observers: tuple[int, ...] | None = None
    adding: tuple[int, ...] | None = None
    removing: tuple[int, ...] | None = None
    marked_for_deletion: bool = False


@attrs.frozen(kw_only=True)
class RejectedRow:
    """Report a row that repeats a partition, or lists more brokers than a table of this length can hold."""

    line: int
    partition: str
    reason: str
    is_repeat: bool = False


@attrs.frozen(kw_only=True, eq=False)
class Closed:
    """Hold the finished table, the line number of each of its rows, and the rejected rows."""

    table: PartitionTable
    line: Int64Array
    rejected: tuple[RejectedRow, ...]


@attrs.define(eq=False)
class PartitionRows:
    """Collect the rows of one cluster's table."""

    source: str
    topics: dict[str, int] = attrs.field(factory=dict)
    _chunks: list[Chunk] = attrs.field(factory=list)
    _single: list[Row] = attrs.field(factory=list)
    _count: int = 0

    def topic_index(self, name: str) -> int:
        """Return the number of the topic, counted from 0 in order of first occurrence."""
        return self.topics.setdefault(name, len(self.topics))

    def add(self, row: Row) -> None:
        """Add one row."""
        self._grow(1)
        self.topic_index(row.topic)
        self._single.append(row)
        if len(self._single) >= 10_000:  # Enough to make packing cheap, few enough to stay small.
            self.pack()

    def add_chunk(self, chunk: Chunk) -> None:
        """Add many rows at once."""
        self._grow(chunk.line.shape[0])
        self._chunks.append(chunk)

    def _grow(self, count: int) -> None:
        self._count += count
        if self._count > PARTITION_COUNT_MAX:
            raise InputError(f"more than {PARTITION_COUNT_MAX} partitions in one cluster", source=self.source)

    def pack(self) -> None:
        """Pack the rows that `add` received into one chunk per width."""
        by_width: dict[int, list[Row]] = {}
        for row in self._single:
            by_width.setdefault(_width(row), []).append(row)
        self._chunks.extend(_packed(by_width[width], self.topics) for width in sorted(by_width))
        self._single = []

    def close(self, already: Callable[[int], str]) -> Closed:
        """Return the finished table, rows in line order; `already` says where the first row of a partition is.

        Cost: one sort.
        """
        self.pack()
        chunks, self._chunks = self._chunks, []
        rejected = self._take_wide(chunks)
        whole = _joined(chunks)
        if not _is_rising(whole.line):
            whole = _selected(whole, np.argsort(whole.line, kind="stable"))
        keys = whole.topic_index.astype(np.int64) << 32 | whole.partition_ids
        if not _is_rising(keys):
            by_key = np.argsort(keys, kind="stable")
            repeated = np.zeros(keys.shape, dtype=np.bool_)
            repeated[1:] = keys[by_key][1:] == keys[by_key][:-1]
            firsts = by_key[np.maximum.accumulate(np.where(repeated, 0, np.arange(keys.size)))]
            twice = np.flatnonzero(repeated)
            lines, rows = whole.line[firsts[twice]].tolist(), by_key[twice].tolist()
            again = [
                self._reject(whole, row, f" is {already(first)}", is_repeat=True)
                for row, first in zip(rows, lines, strict=True)
            ]
            rejected = [*sorted(again, key=lambda row: row.line), *rejected]
            whole = _selected(whole, np.sort(by_key[~repeated])) if rows else whole
        table = PartitionTable(
            topic_index=whole.topic_index, partition_ids=whole.partition_ids, leader=whole.leader, **whole.matrices
        )
        return Closed(table=table, line=whole.line, rejected=tuple(rejected))

    def _reject(self, chunk: Chunk, row: int, reason: str, *, is_repeat: bool = False) -> RejectedRow:
        partition = f"partition {chunk.partition_ids[row]} of {list(self.topics)[chunk.topic_index[row]]}"
        return RejectedRow(
            line=int(chunk.line[row]), partition=partition, reason=partition + reason, is_repeat=is_repeat
        )

    def _take_wide(self, chunks: list[Chunk]) -> list[RejectedRow]:
        """Remove from `chunks` the rows that would widen the matrices beyond their limit, and return them."""
        limit = MATRIX_CELLS_MAX // max(self._count, 1)
        taken = []
        for place, chunk in enumerate(chunks):
            if all(matrix.shape[1] <= limit for matrix in chunk.matrices.values()):
                continue
            widths = np.max([np.count_nonzero(matrix >= 0, axis=1) for matrix in chunk.matrices.values()], axis=0)
            for row in np.flatnonzero(widths > limit).tolist():
                lists = f" lists {widths[row]} brokers; a dump this long may list {limit}"
                taken.append(self._reject(chunk, row, lists))
            kept = widths <= limit
            chunks[place] = _selected(chunk, kept, int(widths[kept].max(initial=0)))
        return sorted(taken, key=lambda row: row.line)


_lists_of: Final = operator.attrgetter(*MATRIX_COLUMNS)


def _width(row: Row) -> int:
    return max(map(len, filter(None, _lists_of(row))), default=0)


def _packed(rows: list[Row], topics: Mapping[str, int]) -> Chunk:
    matrices = {}
    for name in MATRIX_COLUMNS:
        lists = [getattr(row, name) for row in rows]
        if any(ids is not None for ids in lists):
            matrices[name] = padded([ids or () for ids in lists])
    leaders = [row.leader for row in rows]
    known = any(leader is not None for leader in leaders)
    return Chunk(
        line=np.array([row.line for row in rows], dtype=np.int64),
        topic_index=np.array([topics[row.topic] for row in rows], dtype=np.int32),
        partition_ids=np.array([row.partition for row in rows], dtype=np.int32),
        leader=np.array([-2 if leader is None else leader for leader in leaders], dtype=np.int32) if known else None,
        matrices=matrices,
    )


def padded(lists: Sequence[tuple[int, ...]]) -> Int32Array:
    """Return lists of ids as a matrix padded by -1."""
    matrix = np.full((len(lists), max(map(len, lists), default=0)), PAD, dtype=np.int32)
    for row, ids in enumerate(lists):
        matrix[row, : len(ids)] = ids
    return matrix


def _is_rising(numbers: Int64Array) -> bool:
    """Return whether the numbers are strictly increasing."""
    return bool((numbers[1:] > numbers[:-1]).all())


def _selected(chunk: Chunk, rows: NDArray[np.bool_] | NDArray[np.intp], width: int | None = None) -> Chunk:
    """Return these rows of a chunk, matrices cut to `width` columns."""
    return Chunk(
        line=chunk.line[rows],
        topic_index=chunk.topic_index[rows],
        partition_ids=chunk.partition_ids[rows],
        leader=None if chunk.leader is None else chunk.leader[rows],
        matrices={name: matrix[rows, :width] for name, matrix in chunk.matrices.items()},
    )


def _joined(chunks: list[Chunk]) -> Chunk:
    """Return one chunk of all rows; matrices are padded to the widest with -1."""
    count = sum(chunk.line.shape[0] for chunk in chunks)
    named = sorted({name for chunk in chunks for name in chunk.matrices} | {"replicas"})
    widths = {name: max((c.matrices[name].shape[1] for c in chunks if name in c.matrices), default=0) for name in named}
    matrices = {name: np.full((count, width), PAD, dtype=np.int32) for name, width in widths.items()}
    leader = np.full(count, -2, dtype=np.int32) if any(chunk.leader is not None for chunk in chunks) else None
    start = 0
    for chunk in chunks:
        end = start + chunk.line.shape[0]
        for name, matrix in chunk.matrices.items():
            matrices[name][start:end, : matrix.shape[1]] = matrix
        if leader is not None and chunk.leader is not None:
            leader[start:end] = chunk.leader
        start = end
    return Chunk(
        line=np.concatenate([chunk.line for chunk in chunks]) if chunks else np.empty(0, dtype=np.int64),
        topic_index=np.concatenate([c.topic_index for c in chunks]) if chunks else np.empty(0, dtype=np.int32),
        partition_ids=np.concatenate([c.partition_ids for c in chunks]) if chunks else np.empty(0, dtype=np.int32),
        leader=leader,
        matrices=matrices,
    )
