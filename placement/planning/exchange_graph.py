"""Define the arrays of an exchange graph: its shape, an unfinished solution, and what a search over it holds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array, Int64Array
from placement.planning.problem import Problem


class Shape(NamedTuple):
    """Hold what a solution never changes: P partitions, B brokers, G groups, C classes, N nodes; brokers are positions.

    `before` int32[P, W] the replicas that cost nothing; `kind` int32[P] the class, -1 where nothing may change;
    `stays` int32[P, U] brokers that hold it besides; `topic` int32[P]; `leader` int32[P], -1 for none; `fresh` bool[C]
    whether a class may get new replicas; `factor` int64[C]; `must`, `room` int64[C, G]: replicas that a
    group has at least (0 or 1) and at most; `must_count` int64[C] the groups that must have one; `group` int64[B], -1
    for a broker that holds nothing; `receives` bool[B]; `parent` int64[N], -1 for a root; `first_child` int64[N + 1]
    and `child`; `low` and `high` int64[N] bound the arc to the parent. Cells are nodes topic * B + broker; `missing` is
    the last node.
    """

    before: Int32Array
    stays: Int32Array
    kind: Int32Array
    topic: Int32Array
    leader: Int32Array
    fresh: NDArray[np.bool_]
    factor: Int64Array
    must_count: Int64Array
    must: Int64Array
    room: Int64Array
    group: Int64Array
    receives: NDArray[np.bool_]
    parent: Int64Array
    first_child: Int64Array
    child: Int64Array
    low: Int64Array
    high: Int64Array

    @classmethod
    def of(cls, problem: Problem, **graph: Any) -> Shape:
        """Return a problem's arrays for kernels, on a graph: `parent`, `first_child`, `child`, `low` and `high`."""
        shared: dict[str, Any] = {name: getattr(problem, name) for name in cls._fields if hasattr(problem, name)}
        return cls(**shared, must_count=problem.must.sum(axis=1), **graph)


class State(NamedTuple):
    """Hold an unfinished solution: `now` int32[P, V] replicas, packed, -1 pads; the others are int64[N].

    `carried` is what a node's arc to its parent carries, `excess` what it has beyond that; `moves` and `leads` are the
    prices of the first and second level.
    """

    now: Int32Array
    carried: Int64Array
    excess: Int64Array
    moves: Int64Array
    leads: Int64Array


class Holdings(NamedTuple):
    """Hold the partitions of each node: `start` int64[N + 1] into `partition`; `missing` has those that lack one."""

    start: Int64Array
    partition: Int32Array


class Buckets(NamedTuple):
    """Hold cells by topic, key and group: bucket i is member[start[i]:end[i]]; `place` is where a cell stands in it."""

    start: Int64Array
    end: Int64Array
    member: Int64Array
    place: Int64Array


class Search(NamedTuple):
    """Hold the levels of a search, int64[N] with -1 for nodes not reached, and the order of its cells.

    `key` int64[cells] orders the cells in buckets. A key stands for a level and two prices; key_of[level * S + value],
    with S values of prices, is -1 where no cell has both, and may be longer. `values` int64[6] holds the least price
    and the number of prices, of the first and of the second kind, the number of keys, and that of levels.
    """

    level: Int64Array
    key: Int64Array
    key_of: Int64Array
    values: Int64Array


class Workspace(NamedTuple):
    """Hold the scratch arrays of a search: `queue`, `way`, `rows` int64[N], `left` int64[T], and those of blocks.

    `raised` int64[N] says by how much prices rise where a search is stuck. Of blocks, numbered below N: `reached`
    bool[N] by the search; `below` int64[N], reached ones of lower numbers; `highest` int64[N], prices of nodes that
    the search reached, `lowest` of others. `turns` int64[2]: how often prices may still rise, and the nodes reached.
    """

    queue: Int64Array
    way: Int64Array
    rows: Int64Array
    left: Int64Array
    raised: Int64Array
    reached: NDArray[np.bool_]
    below: Int64Array
    highest: Int64Array
    lowest: Int64Array
    turns: Int64Array


def hold(shape: Shape, now: Int32Array, held: Holdings, place: Int64Array) -> None:
    """Fill `held` with the holdings of every node, partitions ascending; `place` int64[N] is room to work in."""
    start, partition = held
    broker_count = shape.group.size
    last = start.size - 2
    for node in range(start.size):
        start[node] = 0
    for row in range(now.shape[0]):
        kind = shape.kind[row]
        if kind < 0:
            continue
        size = 0
        base = np.int64(shape.topic[row]) * broker_count
        while size < now.shape[1] and now[row, size] >= 0:
            start[base + now[row, size] + 1] += 1
            size += 1
        if size < shape.factor[kind]:
            start[last + 1] += 1
    for node in range(start.size - 1):
        start[node + 1] += start[node]
    for node in range(place.size):
        place[node] = start[node]
    for row in range(now.shape[0]):
        kind = shape.kind[row]
        if kind < 0:
            continue
        size = 0
        base = np.int64(shape.topic[row]) * broker_count
        while size < now.shape[1] and now[row, size] >= 0:
            node = base + now[row, size]
            partition[place[node]] = row
            place[node] += 1
            size += 1
        if size < shape.factor[kind]:
            partition[place[last]] = row
            place[last] += 1
