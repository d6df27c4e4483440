"""Schedule restarts in as few batches as possible so that no partition falls under min.insync.replicas.

First fit, fed with the batches of the schedule before in other orders (iterated greedy), gives a schedule; a constraint
and a clique bound it from below. Where both differ the gap is printed; `check_schedule` confirms both sides.

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

Source: Culberson's iterated greedy, here with hyperedges and a largest batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import attrs
import numpy as np

from broker.cluster import ClusterView, Int32Array, Int64Array
from broker.entropy import SplitMix64
from broker.ids import BrokerId
from placement.outages.arrow import table_of
from placement.outages.restart_budget import Limits, RestartLimits, restart_limits
from placement.outages.restart_check import Checked, Conflicts, check_schedule, conflicts_of, lower_bound
from placement.outages.restart_kernel import fill_first_fit

if TYPE_CHECKING:
    import pyarrow as pa

CLIQUE_STARTS: Final = 64
GREEDY_ROUNDS: Final = 600
GREEDY_WORK_MAX: Final = 20_000_000
"""Pairs of brokers that all rounds look at: a thousand brokers have 20 rounds."""


@attrs.frozen(kw_only=True, eq=False)
class RestartSchedule:
    """Hold a schedule of restarts and its certificate.

    `batches` are broker ids; every schedule needs at least `bound` batches, which `weights` int64[N] prove for the
    brokers of `limits.limits`; `checked` is what the checker says of both.
    """

    batches: tuple[tuple[BrokerId, ...], ...]
    bound: int
    weights: Int64Array
    checked: Checked
    limits: RestartLimits

    @property
    def is_optimal(self) -> bool:
        """Return whether the certificate proves that fewer batches are impossible."""
        return len(self.batches) <= self.bound


def restart_schedule(
    view: ClusterView,
    *,
    margin: int = 0,
    batch_max: int | None = None,
    controllers: Iterable[BrokerId] = (),
    despite_out_of_sync: bool = False,
) -> RestartSchedule:
    """Return the schedule with the fewest batches for the live brokers of `view`; raise what `restart_limits` does.

    Despite replicas out of sync, the batch that takes fewest partitions under min.insync.replicas goes first.
    """
    limits = restart_limits(
        view,
        margin=margin,
        batch_max=batch_max,
        controllers=controllers,
        despite_out_of_sync=despite_out_of_sync,
    )
    batches, weights = solve(limits.limits)
    batches = _least_harm_first(limits, batches)
    checked = check_schedule(limits.limits, batches, weights)
    assert not checked.faults, checked.faults
    ids = [BrokerId(int(view.broker_ids[row])) for row in limits.limits.brokers]
    return RestartSchedule(
        batches=tuple(tuple(ids[place] for place in batch) for batch in batches),
        bound=checked.bound,
        weights=weights,
        checked=checked,
        limits=limits,
    )


def _least_harm_first(limits: RestartLimits, batches: Sequence[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
    """Return the batches in order of how many in-sync replicas they take from partitions that forbid a restart.

    A batch waits until all is in sync again, so only the first one restarts brokers beside replicas out of sync.
    """
    forbidding = limits.together[limits.stuck.forbidding]
    columns = np.arange(forbidding.shape[1])[None, :]
    taken = forbidding[(columns < limits.in_sync_count[limits.stuck.forbidding][:, None]) & (forbidding >= 0)]
    count_by_broker = np.bincount(taken, minlength=limits.limits.brokers.size)
    return tuple(sorted(batches, key=lambda batch: int(count_by_broker[list(batch)].sum())))


def solve(limits: Limits) -> tuple[tuple[tuple[int, ...], ...], Int64Array]:
    """Return the schedule with the fewest batches found, as places in the brokers, and weights int64[N] that bound it.

    Cost: `GREEDY_WORK_MAX` pairs of brokers and their constraints.
    """
    conflicts, count = conflicts_of(limits), limits.brokers.size
    if not count:
        return (), np.zeros(0, dtype=np.int64)
    weights = max(
        constraint_weights(limits), clique_weights(conflicts), key=lambda each: lower_bound(limits, each, conflicts)
    )
    target = lower_bound(limits, weights, conflicts)
    rounds = min(GREEDY_ROUNDS, max(GREEDY_WORK_MAX // (count * count), 2))
    return _greedy(limits, conflicts, rounds=rounds, target=target), weights


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


def constraint_weights(limits: Limits) -> Int64Array:
    """Return weights of 1 for the brokers of the constraint that needs most batches; 1 for each if there is none."""
    sizes = np.count_nonzero(limits.members >= 0, axis=1)
    weights = np.zeros(limits.brokers.size, dtype=np.int64)
    needed = -(-sizes // np.maximum(limits.budget, 1))
    if not needed.size or -(-limits.brokers.size // limits.batch_max) >= int(needed.max()):
        return np.ones(limits.brokers.size, dtype=np.int64)
    row = limits.members[int(needed.argmax())]
    weights[row[row >= 0]] = 1
    return weights


def clique_weights(conflicts: Conflicts) -> Int64Array:
    """Return weights of 1 for a large set of brokers of which no two may restart together."""
    clash = conflicts.clash.astype(np.bool_)
    degree = clash.sum(axis=1)
    # Sets of brokers as the bits of whole numbers: for a dozen brokers a tenth of the cost of arrays.
    beside = [sum(1 << other for other in np.flatnonzero(row).tolist()) for row in clash]
    best: list[int] = []
    for start in np.lexsort([np.arange(degree.size), -degree])[:CLIQUE_STARTS].tolist():
        if degree[start] < len(best):  # Nor does any later start have so many beside it that it could do better.
            break
        clique, left = [start], beside[start]
        while left:
            # The broker with most of those that are left beside it, the first of equals.
            chosen = max(_brokers_of(left), key=lambda broker: (beside[broker] & left).bit_count())
            clique.append(chosen)
            left &= beside[chosen]
        if len(clique) > len(best):
            best = clique
    weights = np.zeros(degree.size, dtype=np.int64)
    weights[best] = 1
    return weights


def _brokers_of(bits: int) -> Iterator[int]:
    """Yield the places of the bits that are set, ascending."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


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
