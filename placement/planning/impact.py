"""Say what a plan does to a cluster before it is run, batch by batch and in the end.

Each batch runs over the cluster that the one before leaves. A partition is taken as moved once its batch is complete,
also one that is blocked: findings say so. While a batch runs the leader stays and no replica leaves the ISR.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from broker.broker_rows import broker_rows
from broker.cluster import BoolArray, ClusterView, Int64Array
from broker.errors import UsageError
from broker.min_isr import effective_by_row
from broker.releases import NEWEST, Release
from broker.row_flags import count_each
from placement.balance.audit import assignment_of, least_isr
from placement.balance.constraints import RACK_SPREAD
from placement.balance.loads import leaders, loads
from placement.planning.completion import Completion, completed_view, completion, runs_zookeeper
from placement.planning.directories import DirectoryMoves, directory_moves
from placement.planning.moves import Moves
from placement.planning.peak import Disks, disks
from placement.planning.reassignment import Reassignment
from placement.planning.throttle import Links, Times, times


@attrs.frozen(kw_only=True, eq=False)
class BatchImpact:
    """Hold the impact of one batch: its plan over the cluster at its start, and the cluster at its completion.

    `partition_count` rows change, of which `moving_count` copy and `order_only_count` only change the order.
    `moved_bytes` is None where a size is not known, `times` where nothing limits the rate.
    """

    plan: Reassignment
    moves: Moves
    done: Completion
    partition_count: int
    moving_count: int
    order_only_count: int
    moved_replicas: int
    removed_replicas: int
    moved_bytes: int | None
    leaders_moved: int
    elections: int
    times: Times | None


@attrs.frozen(kw_only=True, eq=False)
class BrokerImpact:
    """Hold the brokers' columns, int64[B] in the order of the view; None where the view does not say.

    `leaders_done` are the leaders when every batch is complete, `leaders_after` those after a preferred election.
    """

    replicas_before: Int64Array
    replicas_in: Int64Array
    replicas_gone: Int64Array
    replicas_after: Int64Array
    leaders_before: Int64Array | None
    leaders_done: Int64Array | None
    leaders_after: Int64Array | None
    bytes_in: Int64Array | None
    bytes_out: Int64Array | None
    disks: Disks | None


@attrs.frozen(kw_only=True, eq=False)
class States:
    """Count the partitions in a state before, on the way and after; None where the view does not say."""

    before: int | None
    during: int | None
    after: int | None


@attrs.frozen(kw_only=True, eq=False)
class Impact:
    """Hold what a plan does, in all and batch by batch; `directories` are the copies inside brokers, counted apart.

    `after` is the cluster when all batches are complete and preferred leaders elected. `under_min_isr` counts
    partitions; `fewer_racks` those on fewer racks than they could be, and `racks` has the rows that the plan breaks,
    moves and leaves so, and restores, by the names of findings; none where racks are not known.
    """

    release: Release
    zookeeper: bool
    before: ClusterView
    after: ClusterView
    batches: tuple[BatchImpact, ...]
    brokers: BrokerImpact
    directories: DirectoryMoves
    under_min_isr: States
    fewer_racks: States
    racks: dict[str, Int64Array]
    has_links: bool

    @property
    def moved_bytes(self) -> int | None:
        """Return the bytes of all copies; None where a size is not known."""
        each = [batch.moved_bytes for batch in self.batches]
        return None if any(one is None for one in each) else sum(one for one in each if one is not None)

    @property
    def moved_replicas(self) -> int:
        """Return the number of new replicas."""
        return sum(batch.moved_replicas for batch in self.batches)

    @property
    def known_bytes(self) -> tuple[int, int]:
        """Return the bytes of the copies whose sizes are known, and the number of new replicas of unknown size."""
        known, unknown = 0, 0
        for batch in self.batches:
            counts, sizes = batch.plan.added.sum(axis=1), batch.plan.copy_bytes
            known += int((counts * np.maximum(sizes, 0)).sum())
            unknown += int(counts[sizes < 0].sum())
        return known, unknown

    @property
    def leader_changes(self) -> int | None:
        """Return the number of partitions that another broker leads in the end; None where the view does not say."""
        now, after = self.before.partitions.leader, self.after.partitions.leader
        return None if now is None or after is None else int(np.count_nonzero((now >= 0) & (now != after)))

    @property
    def seconds(self) -> float | None:
        """Return the time of all batches, one after the other, at least; None where it is not known."""
        each = [batch.times for batch in self.batches]
        return None if any(one is None for one in each) else sum(one.seconds for one in each if one is not None)


def impact(
    plans: Sequence[Reassignment], *, links: Links | None = None, release: Release = NEWEST, zookeeper: bool = False
) -> Impact:
    """Return what `plans`, all over one view, do when they run in their order as batches.

    `zookeeper` asks for a cluster with ZooKeeper; releases before 3.3 are taken to run with it. Raises UsageError
    without a plan, and for ZooKeeper since 4.0. Cost: about a second for a million partitions.
    """
    if not plans:
        raise UsageError("an impact needs a plan")
    before, zookeeper = plans[0].view, runs_zookeeper(release, asked=zookeeper)
    view, batches = before, []
    for number, plan in enumerate(plans):
        current = attrs.evolve(plan, view=view) if number else plan
        batch, after = _batch(current, links or Links(), completion(current, release, zookeeper=zookeeper))
        batches.append(batch)
        view = after
    directories = directory_moves([batch.plan for batch in batches])
    were_crowded, crowded = fewer_racks(before), fewer_racks(view)
    moved = np.zeros(before.partitions.count, dtype=np.bool_)
    for batch in batches:
        moved[batch.plan.rows[batch.plan.added.any(axis=1)]] = True
    racks = {}
    if were_crowded is not None and crowded is not None:
        kept = were_crowded & crowded
        racks = {"racks-broken": crowded & ~kept, "racks-kept": moved & kept, "racks-mended": were_crowded & ~kept}
    return Impact(
        release=release,
        zookeeper=zookeeper,
        before=before,
        after=view,
        batches=tuple(batches),
        brokers=_brokers(before, view, batches, directories),
        directories=directories,
        under_min_isr=_states(list(map(under_min_isr, [before, *(batch.plan.view for batch in batches[1:]), view]))),
        fewer_racks=_states([were_crowded, crowded]),
        racks={name: np.flatnonzero(rows) for name, rows in racks.items()},
        has_links=links is not None and links.is_limited,
    )


def under_min_isr(view: ClusterView) -> BoolArray | None:
    """Return which partitions are leaderless or have too few in-sync replicas for acks=all, bool[P]; None: unknown."""
    table, least = view.partitions, least_isr(view, None)
    if table.isr is None or least is None:
        return None
    factor = np.count_nonzero(table.replicas >= 0, axis=1)
    under = np.count_nonzero(table.isr >= 0, axis=1) < effective_by_row(least, factor)
    if table.leader is not None:
        under |= table.leader == -1
    return np.asarray(under & (least >= 0))


def _batch(plan: Reassignment, links: Links, done: Completion) -> tuple[BatchImpact, ClusterView]:
    """Return what one batch does, and the cluster after it."""
    moves = Moves.of(plan)
    turned = plan.changes & ~plan.added.any(axis=1) & ~plan.removed.any(axis=1)
    table = plan.view.partitions
    now = None if table.leader is None else table.leader[plan.rows]
    moved = 0 if now is None else int(np.count_nonzero((now >= 0) & (done.leader != now)))
    batch = BatchImpact(
        plan=plan,
        moves=moves,
        done=done,
        partition_count=int(np.count_nonzero(plan.changes)),
        moving_count=moves.count,
        order_only_count=int(np.count_nonzero(turned)),
        moved_replicas=int(moves.counts.sum()),
        removed_replicas=int(np.count_nonzero(plan.removed)),
        moved_bytes=int((moves.sizes * moves.counts).sum()) if moves.sizes_known else None,
        leaders_moved=moved,
        elections=int(np.count_nonzero(done.leader != done.preferred)),
        times=times(plan, links, moves),
    )
    return batch, completed_view(plan, done)


def _brokers(
    before: ClusterView, after: ClusterView, batches: Sequence[BatchImpact], directories: DirectoryMoves
) -> BrokerImpact:
    first, last = loads(before).brokers, loads(after).brokers
    assert first.replica_count is not None
    assert last.replica_count is not None
    moves = [batch.moves for batch in batches]
    known = all(each.sizes_known for each in moves)
    gained = _sum([each.replicas_in() for each in moves])
    return BrokerImpact(
        replicas_before=first.replica_count,
        replicas_in=gained,
        replicas_gone=first.replica_count + gained - last.replica_count,
        replicas_after=last.replica_count,
        leaders_before=first.leader_count,
        leaders_done=_leaders_without_election(after, batches),
        leaders_after=last.leader_count,
        bytes_in=_sum([each.bytes_in() for each in moves]) if known else None,
        bytes_out=_sum([each.bytes_out() for each in moves]) if known else None,
        disks=disks(
            [batch.plan for batch in batches],
            moves,
            first.size_bytes,
            [directories.bytes_inside(before, number) for number in range(len(batches))],
        ),
    )


def _leaders_without_election(after: ClusterView, batches: Sequence[BatchImpact]) -> Int64Array | None:
    """Return the leaders of each broker after all batches if no preferred election is held, int64[B]."""
    known = leaders(after.partitions)
    if known is None:
        return None
    leader = known.copy()
    for batch in batches:
        leader[batch.plan.rows] = batch.done.leader
    rows = broker_rows(after.broker_ids, leader)
    return count_each(rows, len(after.brokers))


def _states(found: Sequence[BoolArray | None]) -> States:
    """Count the partitions flagged in the first view, in any of them, and in the last."""
    flags = [each for each in found if each is not None]
    if len(flags) < len(found):
        return States(before=None, during=None, after=None)
    during = np.logical_or.reduce(flags)
    return States(before=int(flags[0].sum()), during=int(during.sum()), after=int(flags[-1].sum()))


def fewer_racks(view: ClusterView) -> BoolArray | None:
    """Return which partitions stand on fewer racks than they could, bool[P]; a broker that is down is on none."""
    if not view.racks:
        return None
    flags = np.zeros(view.partitions.count, dtype=np.bool_)
    pairs = zip(view.brokers, view.alive.tolist(), strict=True)
    brokers = [one if is_alive else attrs.evolve(one, rack=None) for one, is_alive in pairs]
    flags[RACK_SPREAD.violations(assignment_of(view), brokers).subjects] = True
    return flags


def _sum(columns: Sequence[Int64Array]) -> Int64Array:
    total = np.zeros_like(columns[0])
    for column in columns:
        total += column
    return total
