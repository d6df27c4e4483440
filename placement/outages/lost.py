"""Show what a cluster looks like once any set of its brokers is lost: the readable form of every outage.

How: the order of succession (succession.py) cut by the lost brokers, in numpy. Counts are those of the cluster after
the outage, with what was wrong before; `outage(view, ())` gives what is wrong now.

    leaderless_count     partitions without a leader
    under_min_isr_count  leaderless, or fewer in-sync replicas than min.insync.replicas: acks=all is refused
    at_min_isr_count     exactly min.insync.replicas in sync: the next loss puts them under
    no_replica_count     partitions without a live replica
    at_risk_count        partitions without a live replica that has every committed record; led or not, records are
                         lost unless a lost broker returns
    at_risk_bytes        their bytes, one replica each

*Failover concentration*: of the leaders of the lost brokers, the largest share that one broker takes over
(`failover_share`), and the leaders that the fullest broker has then.

Cost: O(replicas). Example: brokers 1 and 2 each lead one of two partitions; 1 is lost, so 2 takes over all:

    >>> from broker.cluster import PartitionTable, TopicView
    >>> table = PartitionTable(topic_index=[0, 0], partition_ids=[0, 1], replicas=[[1, 2], [2, 1]])
    >>> topics = [TopicView("t", min_insync_replicas=2)]
    >>> view = ClusterView.build(name="n", source="s", format="f", partitions=table, topics=topics)
    >>> found = outage(view, [BrokerId(1)])
    >>> found.counts.leaderless_count, found.counts.under_min_isr_count, found.takeover.failover_share
    (0, 2, 1.0)

Source: the rules of succession.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import attrs
import numpy as np

from broker.cluster import PAD, BoolArray, ClusterView, Int32Array, Int64Array
from broker.errors import UsageError
from broker.ids import NO_LEADER, BrokerId
from broker.liveness import Liveness
from broker.row_flags import any_in_row, count_each, count_in_row, first_in_row
from broker.wording import first_of
from placement.outages.arrow import column_of, partition_columns, table_of
from placement.outages.returning import Returns, returns
from placement.outages.succession import Successions, successions

if TYPE_CHECKING:
    import pyarrow as pa


STATES: Final = ("at_risk", "leaderless", "under_min_isr")
"""States whose partitions are listed, the worst first."""


@attrs.frozen(kw_only=True)
class Counts:
    """Hold the counts of one outage; None where the view does not show min.insync.replicas, or every size."""

    leaderless_count: int
    under_min_isr_count: int | None
    at_min_isr_count: int | None
    no_replica_count: int
    at_risk_count: int
    at_risk_bytes: int | None


@attrs.frozen(kw_only=True)
class Takeover:
    """Hold who takes over the leaders of the lost brokers, and who leads most then; the lowest id of equals.

    `lost_leader_count` are the leaders of the lost brokers, `failover_count` the most of them that one broker takes
    over, `failover_share` its share of them; None if nothing is taken over.
    """

    lost_leader_count: int
    failover_count: int
    failover_broker: BrokerId | None
    failover_share: float | None
    leader_count_max: int
    leader_count_max_broker: BrokerId | None
    leader_max_over_mean: float | None


@attrs.frozen(kw_only=True, eq=False)
class States:
    """Hold which partitions are in each bad state, bool[P]."""

    at_risk: BoolArray
    leaderless: BoolArray
    under_min_isr: BoolArray


@attrs.frozen(kw_only=True)
class Headroom:
    """Count the partitions with `headroom` in-sync replicas above min.insync.replicas; below 0 they are under it."""

    headroom: int
    partition_count: int


@attrs.frozen(kw_only=True, eq=False)
class Outage:
    """Hold what a cluster looks like once `lost` are lost, beside what it looks like now.

    `leader` int32[P] is each partition's leader afterwards, -1 for none; `isr_count` int32[P] its in-sync replicas;
    `leader_count` int64[B] what each broker leads then, `leader_count_now` what it leads now. `affected` holds the rows
    of the partitions whose leader or in-sync replicas change, ascending; `coming_back` the partitions at risk, with the
    brokers of which some must return; `states_now` and `states` the partitions in each state before and afterwards.
    """

    lost: tuple[BrokerId, ...]
    now: Counts
    counts: Counts
    takeover: Takeover
    headroom: tuple[Headroom, ...]
    leader: Int32Array
    isr_count: Int32Array
    leader_count_now: Int64Array
    leader_count: Int64Array
    affected: Int64Array
    coming_back: Returns
    states_now: States
    states: States
    notes: tuple[str, ...]


@attrs.frozen(kw_only=True, eq=False)
class After:
    """Hold the state of every partition after a loss: the leader's row of `view.brokers`, -1 for none, and counts."""

    leader: Int32Array
    isr_count: Int32Array
    clean: BoolArray
    replica: BoolArray


def outage(view: ClusterView, lost: Iterable[BrokerId]) -> Outage:
    """Return what `view` looks like once the brokers `lost` are fenced; raise UsageError for an unknown broker."""
    names = tuple(sorted(set(lost)))
    known = {broker.id: row for row, broker in enumerate(view.brokers)}
    unknown = [name for name in names if name not in known]
    if unknown:
        there = first_of(view.broker_ids.tolist(), 20)
        raise UsageError(f"broker {unknown[0]} is not one of cluster {view.name}; there are {there}")
    found = successions(view)
    gone = np.zeros(len(known), dtype=np.bool_)
    before = after_loss(found, gone)
    gone[[known[name] for name in names]] = True
    after = after_loss(found, gone)
    changed = (before.leader != after.leader) | (before.isr_count != after.isr_count)
    ids = np.append(view.broker_ids, NO_LEADER)
    return Outage(
        lost=names,
        now=counts_of(found, before),
        counts=counts_of(found, after),
        takeover=_takeover(view, found, before, after, gone),
        headroom=_headroom(found, after),
        leader=ids[after.leader],
        isr_count=after.isr_count,
        leader_count_now=count_each(before.leader, gone.size),
        leader_count=count_each(after.leader, gone.size),
        affected=np.flatnonzero(changed).astype(np.int64),
        coming_back=returns(view, found, gone),
        states_now=states_of(found, before),
        states=states_of(found, after),
        notes=found.notes,
    )


def taken_over(view: ClusterView) -> ClusterView:
    """Return the view once the controller has fenced the brokers that are stated to be down.

    Whoever comes next leads, and the ISR is without them, but for its last member, which stays.
    """
    down = [broker for broker, how in view.down.items() if how is Liveness.STATED_DOWN]
    table = view.partitions
    if not down or table.leader is None or table.isr is None:
        return view
    found = successions(view)
    after = np.append(view.broker_ids, NO_LEADER)[after_loss(found, np.zeros(len(view.brokers), dtype=np.bool_)).leader]
    hit = np.isin(table.leader, down)
    isr = np.where(np.isin(table.isr, down), PAD, table.isr)
    isr = np.take_along_axis(isr, np.argsort(isr < 0, axis=1, kind="stable"), axis=1)
    isr = np.where(any_in_row(isr >= 0)[:, None], isr, table.isr)
    anew = hit & (after >= 0) & ~any_in_row(isr == after[:, None])
    isr[anew] = PAD
    isr[anew, 0] = after[anew]
    changed = attrs.evolve(table, leader=np.where(hit, after, table.leader).astype(np.int32), isr=isr.astype(np.int32))
    return attrs.evolve(view, partitions=changed)


def after_loss(found: Successions, gone: BoolArray) -> After:
    """Return the state of every partition once the brokers marked in `gone` bool[B] are lost."""
    left = (found.order >= 0) & ~np.append(gone, True)[found.order]  # Padding, -1, reads the last entry.
    place = np.arange(found.order.shape[1], dtype=np.int32)[None, :]
    may_lead = left & (place < found.led_count[:, None])
    leader = first_in_row(found.order, may_lead)
    leads = leader >= 0
    isr_count = count_in_row(left & (place < found.in_sync_count[:, None]))
    return After(
        leader=leader,
        # A leader that was not in the ISR becomes its only member.
        isr_count=np.where(leads, np.maximum(isr_count, 1), 0).astype(np.int32),
        clean=any_in_row(left & (place < found.clean_count[:, None])),
        replica=any_in_row(left),
    )


def is_under_min_isr(found: Successions, after: After) -> BoolArray:
    """Return which partitions refuse writes with acks=all, bool[P]; False where min.insync.replicas is not known."""
    return (found.min_isr >= 0) & ((after.leader < 0) | (after.isr_count < found.min_isr))


def states_of(found: Successions, after: After) -> States:
    """Return which partitions are in each bad state."""
    return States(at_risk=~after.clean, leaderless=after.leader < 0, under_min_isr=is_under_min_isr(found, after))


def counts_of(found: Successions, after: After) -> Counts:
    """Return the counts of one state of a cluster's partitions."""
    known = found.min_isr >= 0
    judged = bool(known.any()) or not known.size
    states, sizes = states_of(found, after), found.size_bytes
    at = known & ~states.under_min_isr & (after.isr_count == found.min_isr)
    return Counts(
        leaderless_count=int(np.count_nonzero(states.leaderless)),
        under_min_isr_count=int(np.count_nonzero(states.under_min_isr)) if judged else None,
        at_min_isr_count=int(np.count_nonzero(at)) if judged else None,
        no_replica_count=int(np.count_nonzero(~after.replica)),
        at_risk_count=int(np.count_nonzero(states.at_risk)),
        at_risk_bytes=None if sizes is None else int(sizes[states.at_risk].sum()),
    )


def _takeover(view: ClusterView, found: Successions, before: After, after: After, gone: BoolArray) -> Takeover:
    lost = (before.leader >= 0) & gone[before.leader]
    lost_count = int(np.count_nonzero(lost))
    taken = np.bincount(after.leader[lost & (after.leader >= 0)], minlength=gone.size)
    led = count_each(after.leader, gone.size)
    left_count = int(np.count_nonzero(found.live & ~gone))
    taker, fullest = (int(each.argmax()) if each.any() else None for each in (taken, led))
    return Takeover(
        lost_leader_count=lost_count,
        failover_count=0 if taker is None else int(taken[taker]),
        failover_broker=None if taker is None else view.brokers[taker].id,
        failover_share=None if taker is None else float(taken[taker] / lost_count),
        leader_count_max=0 if fullest is None else int(led[fullest]),
        leader_count_max_broker=None if fullest is None else view.brokers[fullest].id,
        leader_max_over_mean=None if fullest is None else float(led[fullest] * left_count / led.sum()),
    )


def _headroom(found: Successions, after: After) -> tuple[Headroom, ...]:
    """Return how many partitions have how many in-sync replicas above min.insync.replicas, ascending."""
    known = found.min_isr >= 0
    above = after.isr_count[known] - found.min_isr[known]
    values, counts = np.unique(above, return_counts=True)
    pairs = zip(values.tolist(), counts.tolist(), strict=True)
    return tuple(Headroom(headroom=value, partition_count=count) for value, count in pairs)


def states_table(view: ClusterView, found: Outage) -> pa.Table:
    """Return one row for each partition in a bad state now or after an outage, with a column for each state."""
    columns = {
        f"{name}{when}": getattr(states, name)
        for when, states in (("_now", found.states_now), ("", found.states))
        for name in STATES
    }
    rows = np.flatnonzero(np.any(list(columns.values()), axis=0)).astype(np.int64)
    return table_of(partition_columns(view, rows) | {name: flags[rows] for name, flags in columns.items()})


def affected_table(view: ClusterView, found: Outage) -> pa.Table:
    """Return one row for each partition whose leader or in-sync replicas an outage changes, as an Arrow table."""
    rows = found.affected
    before = outage(view, ())
    leaders = [column_of(each[rows], absent=each[rows] < 0) for each in (before.leader, found.leader)]
    return table_of(
        partition_columns(view, rows)
        | {
            "leader_before": leaders[0],
            "leader_after": leaders[1],
            "isr_count_before": before.isr_count[rows],
            "isr_count_after": found.isr_count[rows],
        }
    )


def leaders_table(view: ClusterView, found: Outage) -> pa.Table:
    """Return one row for each broker: whether it is lost, and the leaders it has now and after the outage."""
    return table_of(
        {
            "broker_id": view.broker_ids,
            "lost": np.isin(view.broker_ids, np.array(found.lost, dtype=np.int32)),
            "leader_count_before": found.leader_count_now,
            "leader_count_after": found.leader_count,
        }
    )
