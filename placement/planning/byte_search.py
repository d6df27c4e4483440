"""Repeat the best move or exchange until bytes are within bounds, and copy less, after the greedy (bytes_kernel.py).

A tabu search: each step takes the best of all moves of a replica and of all exchanges of two, be it an improvement or
not, and bars the way back for a while. A step costs the bytes that it copies, and the bytes outside of bounds times a
weight, which rises while some are outside and falls while none is. Of many replicas only the smallest of each broker
take part, those of brokers outside their bounds, until none is.

Source: Glover, "Tabu Search", ORSA Journal on Computing, 1989; the weight as in its strategic oscillation.
"""

from __future__ import annotations

import sys
from typing import Final

import numpy as np

from broker.cluster import BoolArray, Int32Array, Int64Array
from placement.planning.bytes_kernel import Loads
from placement.planning.problem import Problem

_SLOTS_MAX: Final = 3_000  # Replicas that take part.
_PAIRS_MAX: Final = 10_000_000  # Moves and exchanges looked at: about half a second.
_STEPS_MIN: Final = 200
_STEPS_PER_REPLICA: Final = 4
_STEPS_MAX: Final = 600
_BARRED_STEPS: Final = 12
_WEIGHT_STEP: Final = 1.3


def improve(problem: Problem, now: Int32Array, loads: Loads) -> None:
    """Change `now` int32[P, V] and `loads` to the best placement met: fewest bytes outside bounds, then copied."""
    search = _Search(problem, now, loads)
    best, best_now, best_load, best_held = search.rank(), now.copy(), loads.load.copy(), loads.held.copy()
    pairs = step = 0
    pairs_max = _PAIRS_MAX if search.is_whole else 6 * _PAIRS_MAX  # Or there is no plan.
    steps_max = min(_STEPS_MIN + _STEPS_PER_REPLICA * search.rows.size, _STEPS_MAX)
    while pairs < pairs_max and step < steps_max and best > ((0, 0) if search.is_whole else (0, sys.maxsize)):
        pairs += search.take_best(step)
        step += 1
        if search.rank() < best:
            best, best_now, best_load, best_held = search.rank(), now.copy(), loads.load.copy(), loads.held.copy()
    now[:], loads.load[:], loads.held[:] = best_now, best_load, best_held


class _Search:
    """Hold the N replicas that take part, each at a row and a column of `now`, and what they may do on B brokers."""

    def __init__(self, problem: Problem, now: Int32Array, loads: Loads) -> None:
        self.problem, self.now, self.loads = problem, now, loads
        rows, columns = np.nonzero((now >= 0) & (problem.kind >= 0)[:, None])
        self.is_whole = rows.size <= _SLOTS_MAX
        if not self.is_whole:
            order = np.lexsort((loads.size[rows], now[rows, columns]))
            brokers = now[rows, columns][order]
            number = np.arange(order.size) - np.searchsorted(brokers, brokers)
            chosen = order[number < max(_SLOTS_MAX // loads.load.size, 2)]
            rows, columns = rows[chosen], columns[chosen]
        self.rows, self.columns, self.size = rows, columns, loads.size[rows]
        was = np.zeros((rows.size, loads.load.size + 1), dtype=np.bool_)
        np.put_along_axis(was, problem.before[rows].astype(np.int64), True, axis=1)
        self.was = was[:, :-1]
        self.cost = np.where(self.was, 0, self.size[:, None] + 1)
        self.allowed = self._allowed(np.arange(rows.size))
        self.barred_until = np.full(self.allowed.shape, -1, dtype=np.int64)
        self.weight = 4.0

    def outside(self, load: Int64Array, brokers: Int32Array | Int64Array | slice = slice(None)) -> Int64Array:
        """Return by how much loads are outside the bounds of their brokers; 0 for one that may hold nothing."""
        low, high = self.loads.low[brokers], self.loads.high[brokers]
        return np.where(high > 0, np.maximum(np.maximum(load - high, low - load), 0), 0)

    def rank(self) -> tuple[int, int]:
        """Return the bytes outside bounds and the bytes copied by replicas that take part."""
        at = self.now[self.rows, self.columns]
        return int(self.outside(self.loads.load).sum()), int(self.cost[np.arange(at.size), at].sum())

    def take_best(self, step: int) -> int:
        """Take the best move or exchange that is not barred; return how many were looked at."""
        at: Int32Array = self.now[self.rows, self.columns]
        every, load, size = np.arange(at.size), self.loads.load, self.size
        off = self.outside(load)
        self.weight *= _WEIGHT_STEP if off.any() else 1 / _WEIGHT_STEP
        self.weight = min(max(self.weight, 0.05), 1e4)
        copied = self.cost - self.cost[every, at][:, None]
        open_to = self.allowed & (self.barred_until < step)
        left = self.outside(load[at] - size, at) - off[at]
        change = self.outside(load + size[:, None]) - off + left[:, None]
        moves = np.where(open_to & self._keeps_topic(at), self.weight * change + copied, np.inf)
        some = np.flatnonzero((off[at] > 0) | (~self.was[every, at] & self.is_whole))
        mine = at[some]
        more = size - size[some][:, None]
        change = self.outside(load[mine][:, None] + more, mine[:, None]) - off[mine][:, None]
        change += self.outside(load[at] - more, at) - off[at]
        fits = open_to[some][:, at] & open_to[:, mine].T
        if self.loads.held.shape[0]:
            topic = self.problem.topic[self.rows]
            fits &= topic == topic[some][:, None]
        swaps = np.where(fits, self.weight * change + copied[some][:, at] + copied[:, mine].T, np.inf)
        one, broker = divmod(int(moves.argmin()), load.size)
        if swaps.size and swaps.min() < moves[one, broker]:
            first, other = divmod(int(swaps.argmin()), at.size)
            one, broker = int(some[first]), int(at[other])
            self._move(other, int(at[one]), step)
            self._move(one, broker, step)
        elif moves[one, broker] < np.inf:
            self._move(one, broker, step)
        return moves.size + swaps.size

    def _move(self, one: int, broker: int, step: int) -> None:
        row, column, loads = self.rows[one], self.columns[one], self.loads
        giver = self.now[row, column]
        self.barred_until[one, giver] = step + _BARRED_STEPS
        loads.load[giver] -= self.size[one]
        loads.load[broker] += self.size[one]
        if loads.held.shape[0]:
            loads.held[self.problem.topic[row], [giver, broker]] += [-1, 1]
        self.now[row, column] = broker
        same = np.flatnonzero(self.rows == row)
        self.allowed[same] = self._allowed(same)

    def _keeps_topic(self, at: Int32Array) -> BoolArray:
        """Return which moves keep the bounds by topic, bool[N, B]."""
        held, topic = self.loads.held, self.problem.topic[self.rows]
        if not held.shape[0]:
            return np.ones_like(self.allowed)
        takes, gives = held < self.loads.topic_high, held > self.loads.topic_low
        return takes[topic] & gives[topic, at][:, None]

    def _allowed(self, chosen: Int64Array) -> BoolArray:
        """Return which brokers may hold each of the chosen replicas instead, bool[n, B]."""
        problem, rows = self.problem, self.rows[chosen]
        now = self.now[rows]
        others = np.where(np.arange(now.shape[1]) == self.columns[chosen][:, None], -1, now)
        groups = np.append(problem.group, -1)[others]
        held = (groups[:, :, None] == np.arange(problem.room.shape[1])).sum(axis=1)
        kind = problem.kind[rows]
        lacks = (problem.must[kind] > 0) & (held == 0)
        spare = problem.factor[kind] - (others >= 0).sum(axis=1) - 1
        fits = (held < problem.room[kind]) & (lacks.sum(axis=1)[:, None] - lacks <= spare[:, None])
        can_join = problem.receives & problem.fresh[kind][:, None]
        allowed = fits[:, problem.group] & problem.live & (can_join | self.was[chosen])
        allowed = np.append(allowed, np.zeros((chosen.size, 1), dtype=np.bool_), axis=1)
        for held_by in (now, problem.stays[rows]):
            np.put_along_axis(allowed, held_by.astype(np.int64), False, axis=1)
        return np.asarray(allowed[:, :-1])
