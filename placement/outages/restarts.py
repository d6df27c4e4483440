"""Schedule restarts in as few batches as possible so that no partition falls under min.insync.replicas.

What it decides: in which batch each live broker restarts. A batch begins when the one before is back and every replica
is in sync again.

Goals, most important first: no batch breaks a constraint (restart_budget.py); the batches are as few as possible; a
certificate proves it, or says the gap.

How: first fit, iterated greedy and crossing schedules give a schedule (restart_crossing_kernel.py); a constraint, a
clique and, for up to `EXACT_BROKERS_MAX` brokers, the prices of the best fractional schedule bound it from below
(restart_bound.py, restart_prices.py). Where one batch is left open, prices in cases may prove it
(restart_branching.py), or a depth-first search for one batch fewer (restart_check.py). `check_schedule` confirms both
sides without any of this.

Example: three brokers that share a partition of min.insync.replicas 2 restart one by one; with min.insync.replicas 1
two may restart together.

    >>> from broker.cluster import PartitionTable, TopicView
    >>> table = PartitionTable(topic_index=[0], partition_ids=[0], replicas=[[1, 2, 3]])
    >>> def batches(min_isr):
    ...     topics = [TopicView("t", min_insync_replicas=min_isr)]
    ...     view = ClusterView.build(name="n", source="s", format="f", partitions=table, topics=topics)
    ...     found = restart_schedule(view)
    ...     return found.batches, found.bound, found.is_optimal
    >>> batches(2)
    (((1,), (2,), (3,)), 3, True)
    >>> batches(1)
    (((1, 2), (3,)), 2, True)

Left out: moving partitions so that fewer batches do; `restart_savings.savings` names the ones that are in the way.

Source: ours; the methods are named in the modules.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import attrs
import numpy as np

from broker.cluster import ClusterView, Int32Array, Int64Array
from broker.entropy import SplitMix64
from broker.ids import BrokerId
from placement.outages.arrow import table_of
from placement.outages.restart_bound import best_weights, clique_weights, constraint_weights
from placement.outages.restart_branching import proven_cases
from placement.outages.restart_budget import Limits, RestartLimits, restart_limits
from placement.outages.restart_cases import Case
from placement.outages.restart_check import (
    FOUND,
    NONE,
    SEARCH_STEPS_MAX,
    Checked,
    Conflicts,
    check_schedule,
    conflicts_of,
    within,
)
from placement.outages.restart_columns import Work
from placement.outages.restart_crossing_kernel import fill_by_crossing
from placement.outages.restart_kernel import fill_first_fit
from placement.outages.restart_prices import best_fractional

if TYPE_CHECKING:
    import pyarrow as pa

EXACT_BROKERS_MAX: Final = 200
GREEDY_ROUNDS: Final = 600
GREEDY_ROUNDS_QUICK: Final = 60
SEARCH_STEPS_QUICK: Final = 2_000_000  # Some hundredths of a second.
SEARCH_STEPS_SHORT: Final = 20_000_000
CROSSING_STEPS_MAX: Final = 200_000_000  # About a second.
CROSSING_TURNS: Final = 20_000
SEARCH_STEPS_EARLY: Final = 900_000_000
"""Comparisons of a search before the prices: of brokers with few conflicts it ends sooner than prices are found."""
WORK_MAX: Final = 7_000_000_000
"""Work for prices, cases and searches, about a nanosecond each; the checker does a search again."""
CASE_WORK_MAX: Final = 2_800_000_000
CASES_BROKERS_MAX: Final = 140  # Of more brokers the heaviest batch of a case takes too long; a long search serves.
CASES_GAP_MAX: Final = 0.35
"""Prices that prove less than so much below a whole number of batches prove it in few cases, if in any."""


@attrs.frozen(kw_only=True, eq=False)
class RestartSchedule:
    """Hold a schedule of restarts and its certificate.

    `batches` are broker ids; every schedule needs at least `bound` batches, which `weights` int64[N] prove for the
    brokers of `limits.limits`, or the `cases` do; `checked` is what the checker says of both.
    """

    batches: tuple[tuple[BrokerId, ...], ...]
    bound: int
    weights: Int64Array
    checked: Checked
    limits: RestartLimits
    cases: tuple[Case, ...] = ()

    @property
    def is_optimal(self) -> bool:
        """Return whether the certificate proves that fewer batches are impossible."""
        return len(self.batches) <= self.bound


@attrs.frozen(kw_only=True, eq=False)
class Found:
    """Hold a schedule as places in the brokers of its limits, and what bounds it.

    `bound` is what `weights` prove; `by_search` is more where a search found no schedule of one batch fewer, else 0.
    The `cases`, if there are some, prove that no schedule has fewer batches.
    """

    batches: tuple[tuple[int, ...], ...]
    weights: Int64Array
    bound: int
    by_search: int
    cases: tuple[Case, ...] = ()


def restart_schedule(
    view: ClusterView,
    *,
    margin: int = 0,
    batch_max: int | None = None,
    controllers: Iterable[BrokerId] = (),
    despite_out_of_sync: bool = False,
    thorough: bool = True,
) -> RestartSchedule:
    """Return the schedule with the fewest batches for the live brokers of `view`; raise what `restart_limits` does.

    Despite replicas out of sync, the batch that takes fewest partitions under min.insync.replicas goes first. Unless it
    is to be `thorough`, a short search alone looks for fewer batches, so that the gap may be larger.
    """
    limits = restart_limits(
        view,
        margin=margin,
        batch_max=batch_max,
        controllers=controllers,
        despite_out_of_sync=despite_out_of_sync,
    )
    found = _gentlest_first(limits, solve(limits.limits, thorough=thorough))
    checked = check_schedule(
        limits.limits,
        found.batches,
        found.weights,
        by_weights=found.bound,
        by_search=found.by_search,
        cases=found.cases,
    )
    assert not checked.faults, checked.faults
    ids = [BrokerId(int(view.broker_ids[row])) for row in limits.limits.brokers]
    return RestartSchedule(
        batches=tuple(tuple(ids[place] for place in batch) for batch in found.batches),
        bound=checked.bound,
        weights=found.weights,
        checked=checked,
        limits=limits,
        cases=found.cases,
    )


def _gentlest_first(limits: RestartLimits, found: Found) -> Found:
    """Return the batches in order of how many in-sync replicas they take from partitions that forbid a restart.

    A batch waits until all is in sync again, so only the first one restarts brokers beside replicas out of sync.
    """
    forbidding = limits.together[limits.stuck.forbidding]
    columns = np.arange(forbidding.shape[1])[None, :]
    taken = forbidding[(columns < limits.in_sync_count[limits.stuck.forbidding][:, None]) & (forbidding >= 0)]
    count_by_broker = np.bincount(taken, minlength=limits.limits.brokers.size)
    ordered = sorted(found.batches, key=lambda batch: int(count_by_broker[list(batch)].sum()))
    return attrs.evolve(found, batches=tuple(ordered))


def solve(limits: Limits, *, thorough: bool = True) -> Found:
    """Return the schedule with the fewest batches found, and what bounds it; see `restart_schedule`."""
    conflicts = conflicts_of(limits)
    if not limits.brokers.size:
        return Found(batches=(), weights=np.zeros(0, dtype=np.int64), bound=0, by_search=0)
    batches = _greedy(limits, conflicts, rounds=1)
    weights, bound = best_weights(limits, conflicts, [constraint_weights(limits), clique_weights(conflicts)])
    if len(batches) > bound:
        rounds = GREEDY_ROUNDS if thorough else GREEDY_ROUNDS_QUICK
        batches = _greedy(limits, conflicts, rounds=rounds, target=bound)
    if limits.brokers.size > EXACT_BROKERS_MAX:
        return Found(batches=batches, weights=weights, bound=bound, by_search=0)
    steps_max = SEARCH_STEPS_SHORT if thorough else SEARCH_STEPS_QUICK
    batches, by_search = _searched(limits, conflicts, batches, bound, steps_max)
    found = Found(batches=batches, weights=weights, bound=bound, by_search=by_search)
    return _closed(limits, conflicts, found) if thorough and len(batches) > max(bound, by_search) else found


def _closed(limits: Limits, conflicts: Conflicts, found: Found) -> Found:
    """Return a schedule of fewer batches, or a better bound: what takes seconds.

    Better schedules first, and a search; then prices; where these leave one batch open, cases; a long search at last.
    """
    batches = _by_crossing(limits, conflicts, found.batches, found.bound)
    batches, by_search = _searched(limits, conflicts, batches, found.bound, SEARCH_STEPS_EARLY)
    if len(batches) <= max(found.bound, by_search):
        return attrs.evolve(found, batches=batches, by_search=by_search)
    prices = best_fractional(limits, conflicts, batches, len(batches), known=found.bound)
    left = WORK_MAX - SEARCH_STEPS_EARLY - prices.work_done
    better = prices.bound > found.bound
    weights, bound = (prices.weights, prices.bound) if better else (found.weights, found.bound)
    if len(batches) != bound + 1:
        return Found(batches=batches, weights=weights, bound=bound, by_search=0)
    is_near = prices.value > bound - CASES_GAP_MAX and limits.brokers.size <= CASES_BROKERS_MAX
    if is_near and _only_pairs(limits, conflicts):
        work = Work(CASE_WORK_MAX)
        cases = proven_cases(conflicts.clash, prices.batches, len(batches), work)
        if cases:
            return Found(batches=batches, weights=weights, bound=bound, by_search=0, cases=cases)
        left -= CASE_WORK_MAX - work.left
    steps_max = min(SEARCH_STEPS_MAX, left * 5 // 8)
    if steps_max > SEARCH_STEPS_EARLY:
        batches, by_search = _searched(limits, conflicts, batches, bound, steps_max)
    return Found(batches=batches, weights=weights, bound=bound, by_search=by_search)


def _only_pairs(limits: Limits, conflicts: Conflicts) -> bool:
    """Return whether pairs of brokers are all that forbids a batch."""
    return not conflicts.budget.size and limits.batch_max >= limits.brokers.size


def _searched(
    limits: Limits, conflicts: Conflicts, batches: tuple[tuple[int, ...], ...], bound: int, steps_max: int
) -> tuple[tuple[tuple[int, ...], ...], int]:
    """Return a schedule of fewer batches while a search finds one, and what it proves: 0 if it is cut off."""
    while len(batches) > bound:
        found, batch_of = within(limits, conflicts, len(batches) - 1, steps_max)
        if found != FOUND:
            return batches, len(batches) if found == NONE else 0
        batches = _batches(batch_of)
    return batches, 0


def _by_crossing(
    limits: Limits, conflicts: Conflicts, batches: tuple[tuple[int, ...], ...], bound: int
) -> tuple[tuple[int, ...], ...]:
    """Return a schedule of fewer batches while crossing schedules finds one; only where pairs are all that counts."""
    while _only_pairs(limits, conflicts) and len(batches) > max(bound, 2):
        batch_of = np.zeros(limits.brokers.size, dtype=np.int32)
        fewer = len(batches) - 1
        if fill_by_crossing(conflicts.clash, fewer, CROSSING_STEPS_MAX, CROSSING_TURNS, batch_of):
            break
        batches = _batches(batch_of)
    return batches


def _greedy(limits: Limits, conflicts: Conflicts, *, rounds: int, target: int = 0) -> tuple[tuple[int, ...], ...]:
    """Return the best schedule of so many rounds of first fit; stop at `target` batches."""
    tables = (conflicts.clash, conflicts.hyperedge_of, conflicts.budget)
    count = limits.brokers.size
    degree = conflicts.clash.sum(axis=1, dtype=np.int64) + np.count_nonzero(conflicts.hyperedge_of >= 0, axis=1)
    order = np.lexsort([np.arange(count), -degree]).astype(np.int64)
    entropy = SplitMix64(0)
    batch_of = np.zeros(count, dtype=np.int32)
    for turn in range(rounds):
        batch_count = fill_first_fit(tables, limits.batch_max, order, batch_of)
        if batch_count <= target:
            break
        sizes = np.bincount(batch_of, minlength=batch_count)
        drawn = np.array([entropy.next_int_bound(1 << 30) for _ in range(batch_count)], dtype=np.int64)
        keys = (-np.arange(batch_count), sizes, -sizes, drawn)[turn % 4]
        rank = np.empty(batch_count, dtype=np.int64)
        rank[np.lexsort([drawn, keys])] = np.arange(batch_count)
        order = np.lexsort([np.arange(count), rank[batch_of]]).astype(np.int64)
    return _batches(batch_of)


def _batches(batch_of: Int32Array) -> tuple[tuple[int, ...], ...]:
    """Return the batches of brokers, the largest first; of equals the one with the lowest broker."""
    members = [tuple(np.flatnonzero(batch_of == batch).tolist()) for batch in range(int(batch_of.max()) + 1)]
    return tuple(sorted(members, key=lambda batch: (-len(batch), batch)))


def schedule_table(found: RestartSchedule) -> pa.Table:
    """Return one row for each broker that restarts: its batch, from 1, and its weight in the certificate."""
    batch_of = {broker: number for number, batch in enumerate(found.batches, start=1) for broker in batch}
    brokers = sorted(batch_of)
    return table_of(
        {
            "broker_id": np.array(brokers, dtype=np.int32),
            "batch": np.array([batch_of[broker] for broker in brokers], dtype=np.int32),
            "weight": found.weights,
        }
    )
