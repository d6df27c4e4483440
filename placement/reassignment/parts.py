"""Cut partitions into parts of about equal bytes, whose least moves within bands of bytes are a flow.

What it decides: how many parts each partition has, what moves least if parts may stand apart, and which brokers form
blocks with one reachable mean.

How. A partition has as many parts as its bytes ask for, rounded so that the sums of brokers stay near theirs. Parts of
one partition may stand on different brokers, so exchange.py solves the problem exactly; its answer is near the least
of whole partitions where these are small, and its prices bound them in any case.

Constraints: at most `PART_COUNT_MAX` parts besides one for each partition, or as many as the caller allows.

Example: partitions of 5 and 3 bytes on broker 0, which a second broker joins: with bands of 2 to 6 bytes 2 bytes move.

    >>> import numpy as np
    >>> plain = Problem.of_rows([[0], [0]], group=[0, 0])
    >>> parts = Parts.of(plain, np.array([5, 3]), np.zeros(2, dtype=np.int64))
    >>> flow = parts.flow(np.array([2, 2]), np.array([6, 6]))
    >>> parts.unit, parts.copied_bytes(flow)
    (1, 2)

Left out: whole partitions (least_band.py).

Source: ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs
import numpy as np

from broker.cluster import Int32Array, Int64Array
from broker.row_flags import any_in_row
from placement.reassignment.exchange import solve
from placement.reassignment.problem import Bounds, InfeasibleError, Problem, Solution
from placement.reassignment.sets_kernel import round_sizes

PART_COUNT_MAX: Final = 80_000
_PARTS_PER_PARTITION: Final = 64
_PART_COUNT_MIN: Final = 4_000
_MEAN_MIN: Final = 4_000  # Parts of a broker, so that floors and ceilings of means are near them.
WIDENINGS: Final = (0, 1, 2, 4, 8, 16, 64, 256)
"""By how many parts bands are made wider, one after the other, until parts fit."""


@attrs.frozen(eq=False, kw_only=True)
class Parts:
    """Hold a problem with its partitions cut into parts: `whole`, `cut`, the bytes of a part, and whose each part is.

    `sizes` int64[P] are the bytes of each partition; `base` int64[B] those of partitions that may not change; `start`
    int64[P + 1] are the parts of each partition.
    """

    whole: Problem
    cut: Problem
    sizes: Int64Array
    base: Int64Array
    unit: int
    start: Int64Array

    @classmethod
    def of(
        cls,
        whole: Problem,
        sizes: Int64Array,
        base: Int64Array,
        share: Int64Array | None = None,
        count_max: int | None = None,
    ) -> Parts:
        """Return the problem with parts of about equal bytes; `share` int64[B] are the capacities of brokers.

        There are about `count_max` parts at most where that is given.
        """
        chosen = whole.kind >= 0
        total = int(sizes[chosen].sum())
        partitions = int(np.count_nonzero(chosen))
        limit = PART_COUNT_MAX + partitions if count_max is None else count_max
        most = min(max(_PARTS_PER_PARTITION * partitions, _PART_COUNT_MIN), limit)
        divisor = max(int(np.gcd.reduce(sizes[chosen])) if partitions else 1, 1)
        unit = divisor * max(-(-total // (most * divisor)), 1)
        count = np.zeros(sizes.size, dtype=np.int64)
        round_sizes(whole.before, whole.kind, sizes, unit, count, np.zeros(whole.group.size, dtype=np.int64))
        rows = np.repeat(np.arange(sizes.size), count)
        cut = attrs.evolve(
            whole,
            before=whole.before[rows],
            kind=whole.kind[rows],
            leader=np.full(rows.size, -1, dtype=np.int32),
            base=(base + unit // 2) // unit,
            topic=np.zeros(rows.size, dtype=np.int32),
            topic_low=None,
            topic_high=None,
            share=share,
        )
        start = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
        return cls(whole=whole, cut=cut, sizes=sizes, base=base, unit=unit, start=start)

    def without(self, rows: Int64Array, held: Int64Array, count_max: int | None = None) -> Parts:
        """Return the problem without partitions that are decided, which `held` int64[B] are the bytes of."""
        kind = self.whole.kind.copy()
        kind[rows] = -1
        rest = attrs.evolve(self.whole, kind=kind)
        return Parts.of(rest, self.sizes, self.base + held, self.cut.share, count_max)

    def flow(self, low: Int64Array, high: Int64Array, widenings: Sequence[int] = WIDENINGS) -> Solution:
        """Return the least moves of parts within `low` to `high` int64[B] bytes, made wider by parts until they fit.

        Raises InfeasibleError where they do not fit in the widest bands.
        """
        problem = self.cut
        least, most = low // self.unit, -(-high // self.unit)
        for wider in widenings:
            bounds = Bounds(
                low=np.where(problem.live, np.maximum(least - wider, 0), 0),
                high=np.where(problem.live, most + wider, 0),
                block=np.where(problem.live, 0, -1),
                totals=np.array([problem.total], dtype=np.int64),
            )
            try:
                return solve(problem, bounds, leaders_last=False)
            except InfeasibleError:
                continue
        raise InfeasibleError("parts do not fit in the bands")

    def copied_bytes(self, flow: Solution) -> int:
        """Return about how many bytes a flow of parts copies."""
        fresh = flow.now >= 0
        for column in range(self.cut.before.shape[1]):
            fresh &= flow.now != self.cut.before[:, column : column + 1]
        return int(np.count_nonzero(fresh)) * self.unit

    def apart(self, flow: Solution) -> tuple[Int32Array, Int64Array]:
        """Return the brokers of each part, sorted, int32[N, V], and the partitions whose parts stand apart."""
        return self.apart_of(flow.now)

    def apart_of(self, now: Int32Array) -> tuple[Int32Array, Int64Array]:
        """Return the same for the brokers of parts in `now`, int32[N, V]."""
        sets = np.sort(now, axis=1)
        owner = np.repeat(np.arange(self.sizes.size), np.diff(self.start))
        return sets, np.unique(owner[any_in_row(sets != sets[self.start[owner]])])

    def blocks(self) -> Int64Array:
        """Return the block of each broker, int64[B], the fullest first, -1 for brokers that may hold nothing."""
        if not self.base[self.cut.live].any() and _is_one_block(self.cut):
            return np.where(self.cut.live, 0, -1)
        return solve(self._finer(), leaders_last=False).block

    def _finer(self) -> Problem:
        """Return the cut problem with so many parts that the mean of brokers is no small number of them."""
        cut = self.cut
        mean = cut.total // max(int(np.count_nonzero(cut.live)), 1)
        times = max(-(-_MEAN_MIN // max(mean, 1)), 1)
        rows = np.repeat(np.arange(cut.kind.size), times)
        return attrs.evolve(
            cut,
            before=cut.before[rows],
            kind=cut.kind[rows],
            leader=cut.leader[rows],
            topic=cut.topic[rows],
            base=(self.base * times + self.unit // 2) // self.unit,
        )


def _is_one_block(problem: Problem) -> bool:
    """Return whether every partition, spread over all live brokers by their shares, keeps the rules."""
    live = problem.live
    share = np.ones(live.size, dtype=np.int64) if problem.share is None else problem.share
    if not problem.receives[live].all() or not live.any():
        return False
    share, group = share[live].astype(np.float64), problem.group[live]
    whole = share.sum()
    of_group = np.bincount(group, weights=share, minlength=problem.room.shape[1])
    spread = problem.factor[:, None] * of_group / whole
    slack = 1e-9
    fits = (spread >= problem.must - slack) & (spread <= np.maximum(problem.room, 0) + slack)
    return bool(fits.all()) and float(problem.factor.max(initial=0)) * share.max() <= whole * (1 + slack)
