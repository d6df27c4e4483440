"""Find the largest partitions that can stay where they are, so that small ones move in their place.

What it decides: which partitions keep their brokers before others choose theirs. The least moves of parts (parts.py)
are many: to take 10 bytes off a broker, parts of a partition of 500 bytes are as good as ten partitions of one byte.
Only the second choice can be carried out.

How. Partitions whose brokers keep every rule are taken by size, the largest first. As many of them stay as do not
raise what the parts of all others copy, by halving; the next one, which raises it, is left free, and so on.

Constraints: the work is that of the search that asks (large_partitions.py), so it ends.

Example: of partitions of 6, 4, 3 and 1 bytes on broker 0, which a second broker joins, the one of 6 stays where each
shall have 7 bytes, and those of 4 and 3 move.

Left out: a partition that has to leave one of its brokers, such as one that is drained, but could keep the others.

Source: ours; an LP's optimum is made to agree with a rounding of it, as in the feasibility pump (Fischetti, Glover &
Lodi, Mathematical Programming, 2005).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from broker.cluster import Int64Array
from broker.row_flags import any_in_row, count_in_row
from placement.reassignment.problem import Problem

_FREE_MAX: Final = 20
"""Partitions that are left free, one after the other, before the rest is."""

_ROWS_MAX: Final = 1_000
"""Partitions that are asked about, the largest: each question names them all."""


def staying(problem: Problem, sizes: Int64Array, least: int) -> Int64Array:
    """Return the partitions of at least `least` bytes whose brokers keep every rule, int64[N], largest first."""
    rows = np.flatnonzero((problem.kind >= 0) & (sizes >= least)).astype(np.int64)
    held, kind = problem.before[rows], problem.kind[rows]
    group = np.append(problem.group, -1)[held]
    keeps = count_in_row(held >= 0) == problem.factor[kind]
    keeps &= ~any_in_row((held >= 0) & (group < 0))
    for number in range(problem.room.shape[1]):
        count = count_in_row(group == number)
        keeps &= (count >= problem.must[kind, number]) & (count <= problem.room[kind, number])
    rows = rows[keeps]
    return np.asarray(rows[np.argsort(-sizes[rows], kind="stable")][:_ROWS_MAX])


def keep_largest(rows: Int64Array, costs_nothing: Callable[[Int64Array], bool]) -> Int64Array:
    """Return those of `rows` that stay; `costs_nothing` tells whether some of them can, all at once."""
    kept, start = np.empty(0, dtype=np.int64), 0
    for _ in range(_FREE_MAX):
        whole = np.concatenate([kept, rows[start:]])
        if start == rows.size or costs_nothing(whole):
            return whole
        good, bad = 0, rows.size - start
        while bad - good > 1:
            middle = (good + bad) // 2
            if costs_nothing(np.concatenate([kept, rows[start : start + middle]])):
                good = middle
            else:
                bad = middle
        kept = np.concatenate([kept, rows[start : start + good]])
        start += good + 1
    return kept
