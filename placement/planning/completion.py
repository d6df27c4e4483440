"""Decide when Kafka completes each partition of a reassignment, and what the cluster is then.

What it decides, for each row of a reassignment: which kept replicas must come back in sync first, whether it can
complete at all, its ISR and its leader afterwards, and its leader after a preferred election.

Constraints: a reassignment never takes a member out of the ISR before it completes; the leader stays while it is in the
target.

How: the replicas that are added join the ISR once they have caught up. A row completes when its ISR, without the
removed replicas, is not empty and holds

    until 3.7   every added replica
    3.8 to 4.2  every replica of the target (KAFKA-15665): one kept replica that is out of sync blocks the row
    since 4.3   every added replica; and every replica of the target if fewer are added than removed (KAFKA-19975)
    ZooKeeper   every replica of the target, in any release and for a new order too

With KRaft, a row that adds and removes nothing is a new order: it completes at once, and the leader stays (Kafka
elects only when the leader is no longer valid). If the leader is removed, the first replica of the target that is in
sync leads. The preferred leader takes over in a second step: kafka-leader-election, or the controller's automatic
rebalance. Brokers that are down, new replicas on brokers in no ISR, and offline replicas are not elected, and a
partition without a leader keeps none: if anybody who may lead it were live, the controller would have elected it.

Example: replicas 1, 2, 3 of which 3 is out of sync, to 1, 4, 3: 4.2 waits for broker 3, 4.3 does not.

Left out: a broker that fails on the way. ISR members that are fenced are taken as they are listed.

A target on a broker that is down is refused before all that: kafka-reassign-partitions --execute knows live brokers
only, and refuses the whole file.

Source: Kafka 3.7.0, 4.2.1 and 4.3.1 controller/PartitionReassignmentReplicas (maybeCompleteReassignment);
PartitionChangeBuilder.electAnyLeader; ReplicationControlManager.electLeader; for ZooKeeper 3.9.2
KafkaController.isReassignmentComplete; 4.4.0 ReassignPartitionsCommand.verifyBrokerIds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs
import numpy as np

from broker.cluster import PAD, BoolArray, ClusterView, Int32Array, Int64Array
from broker.errors import UsageError
from broker.ids import NO_LEADER, BrokerId
from broker.liveness import Liveness
from broker.releases import NEWEST, Release
from broker.row_flags import any_in_row, count_in_row, first_in_row, members
from broker.wording import brokers_listed
from placement.outages.elections import preferred_rows
from placement.planning.given import unled
from placement.planning.goal import SHOWN_MAX, Goal, excluded_rows
from placement.planning.reassignment import BoolMatrix, Reassignment, packed, widened

NEEDS_ALL_TARGETS_SINCE: Final = Release("3.8")
NEEDS_ADDED_ONLY_SINCE: Final = Release("4.3")
OTHERS: Final = "preferred-election-others.json"
"""The file of the election of partitions that no batch changes."""
KRAFT_BEGINS: Final = Release("2.8")
"""The first release that can run without ZooKeeper, as a preview until 3.3 (KIP-833)."""
KRAFT_ASSUMED_SINCE: Final = Release("3.3")
ZOOKEEPER_UNTIL: Final = Release("3.9")


@attrs.frozen(kw_only=True, eq=False)
class Completion:
    """Hold what becomes of each of the N rows under one release; columns stand beside the reassignment's rows.

    `waits_for` marks the targets, bool[N, W], that must come back in sync before the row completes, `never_joins` the
    added ones on brokers that are not alive. `is_stuck` marks rows with one of these, without a member of the ISR
    afterwards, or without a leader to copy from. `isr` int32[N, W] is the ISR at completion, `leader` int32[N] the
    leader then, `preferred` int32[N] the leader after a preferred election; -1 is no leader.
    """

    waits_for: BoolMatrix
    never_joins: BoolMatrix
    is_stuck: BoolArray
    isr: Int32Array
    leader: Int32Array
    preferred: Int32Array

    @property
    def is_blocked(self) -> BoolArray:
        """Return which rows do not complete as the cluster stands, bool[N]."""
        return np.asarray(any_in_row(self.waits_for) | self.is_stuck)


def runs_zookeeper(release: Release, *, asked: bool = False) -> bool:
    """Return whether a cluster of `release` runs with ZooKeeper: as asked, else the mode that is usual there.

    Raises UsageError if it is asked for of a release that has none.
    """
    if asked and release > ZOOKEEPER_UNTIL:
        raise UsageError(f"release {release} runs without ZooKeeper; the last one with it is {ZOOKEEPER_UNTIL}")
    return asked or release < KRAFT_ASSUMED_SINCE


def runs_either(release: Release) -> bool:
    """Return whether clusters of `release` run with ZooKeeper or with KRaft."""
    return KRAFT_BEGINS <= release <= ZOOKEEPER_UNTIL


def completion(reassignment: Reassignment, release: Release = NEWEST, *, zookeeper: bool = False) -> Completion:
    """Return when and how each row completes; replicas whose ISR the view does not give count as in sync.

    `zookeeper` asks for the rule of ZooKeeper's controller.
    """
    target, added, view = reassignment.replicas, reassignment.added, reassignment.view
    in_sync = _in_sync(reassignment)
    waits = _waits_for(reassignment, None if zookeeper else release, in_sync)
    down = np.isin(target, view.broker_ids[~view.alive])
    never = added & down
    gone = down | _offline(reassignment)
    leaderless = unled(view)[reassignment.rows]
    blocked = _moves(reassignment) & (~any_in_row(in_sync) | any_in_row(added & gone))
    stuck = blocked | (leaderless & any_in_row(added))
    isr = np.where(in_sync, target, PAD)
    electable = in_sync & ~gone & ~leaderless[:, None]
    leader = _leader(reassignment, electable)
    first = target[:, 0] if target.shape[1] else leader
    preferred_is_in_sync = electable[:, 0] if target.shape[1] else np.zeros(0, dtype=np.bool_)
    return Completion(
        waits_for=waits,
        never_joins=never,
        is_stuck=stuck,
        isr=packed(isr),
        leader=leader,
        preferred=np.where(preferred_is_in_sync, first, leader).astype(np.int32, copy=False),
    )


def completed_view(reassignment: Reassignment, done: Completion | None = None) -> ClusterView:
    """Return the cluster after every row has completed, blocked ones too, and preferred leaders are elected.

    `done` is the completion if the caller has it. Kept replicas that are out of sync stay so; eligible leader replicas
    (ELR) that lose their replica go. A broker that is down stays so, also when nothing that it holds shows it any more.
    """
    found = completion(reassignment) if done is None else done
    view, table, rows = reassignment.view, reassignment.table(), reassignment.rows
    leader, isr = view.partitions.leader, view.partitions.isr
    if leader is not None:
        leader = leader.copy()
        known = leader[rows] >= NO_LEADER
        leader[rows] = np.where(known, found.preferred, leader[rows])
    if isr is not None:
        width = max(isr.shape[1], found.isr.shape[1])
        isr = widened(isr, width).copy()
        isr[rows] = widened(found.isr, width)
    nobody = reassignment.replicas[:, :0]
    others = {
        name: _kept(getattr(table, name), rows, nobody if name in ("adding", "removing") else reassignment.replicas)
        for name in ("elr", "last_known_elr", "offline", "observers", "adding", "removing")
    }
    after = attrs.evolve(view, partitions=attrs.evolve(table, leader=leader, isr=isr, **others))
    return after.with_stated(view.seen_down)


def unblocked_by_newer_release(reassignment: Reassignment) -> BoolArray:
    """Return which rows a kept out-of-sync replica blocks from 3.8 to 4.2 and no longer from 4.3, bool[N]."""
    before = any_in_row(_waits_for(reassignment, Release("4.2"), _in_sync(reassignment)))
    if not before.any():
        return before
    return before & ~any_in_row(_waits_for(reassignment, NEEDS_ADDED_ONLY_SINCE, _in_sync(reassignment)))


def elected_besides(plan: Reassignment, goal: Goal) -> Reassignment:
    """Return the partitions outside the plan's steps that their preferred leader does not lead now.

    They need a preferred election; those of topics that the goal excludes are left out.
    """
    view, table = plan.view, plan.view.partitions
    drifted = np.zeros(table.count, dtype=np.bool_)
    drifted[preferred_rows(view)] = True
    drifted[plan.rows] = False
    rows = np.flatnonzero(drifted & ~excluded_rows(view, goal))
    return Reassignment(view=view, rows=rows, replicas=table.replicas[rows])


def _in_sync(reassignment: Reassignment) -> BoolMatrix:
    """Return which targets are in sync once the added ones have caught up, bool[N, W]."""
    return reassignment.added | ((reassignment.replicas >= 0) & _now_in_sync(reassignment))


def _waits_for(reassignment: Reassignment, release: Release | None, in_sync: BoolMatrix) -> BoolMatrix:
    """Return which targets must come back in sync before their row completes, bool[N, W]; None is ZooKeeper's rule."""
    if release is None:
        return (reassignment.replicas >= 0) & ~in_sync & reassignment.changes[:, None]
    needed = (reassignment.replicas >= 0) & _needs_all(reassignment, release)[:, None]
    return needed & ~in_sync & _moves(reassignment)[:, None]


def _moves(reassignment: Reassignment) -> BoolArray:
    """Return which rows add or remove a replica, bool[N]."""
    return any_in_row(reassignment.added) | any_in_row(reassignment.removed)


def _needs_all(reassignment: Reassignment, release: Release) -> BoolArray:
    """Return which rows wait for every replica of their target, bool[N]."""
    if release < NEEDS_ALL_TARGETS_SINCE:
        return np.zeros(reassignment.count, dtype=np.bool_)
    if release < NEEDS_ADDED_ONLY_SINCE:
        return np.ones(reassignment.count, dtype=np.bool_)
    return np.asarray(count_in_row(reassignment.added) < count_in_row(reassignment.removed))


def _now_in_sync(reassignment: Reassignment) -> BoolMatrix:
    """Return which targets are current replicas in sync, bool[N, W]; all of them where the view gives no ISR."""
    isr = reassignment.view.partitions.isr
    if isr is None:
        return members(reassignment.replicas, reassignment.current)
    return members(reassignment.replicas, isr[reassignment.rows])


def _leader(reassignment: Reassignment, electable: BoolMatrix) -> Int32Array:
    """Return the leader at completion, int32[N]: the present one if it is in the target, else the first electable."""
    target, now = reassignment.replicas, reassignment.source
    stays = (target == now[:, None]) & electable
    return np.where(any_in_row(stays), now, first_in_row(target, electable)).astype(np.int32, copy=False)


def _offline(reassignment: Reassignment) -> BoolMatrix:
    """Return which targets the view lists as offline, bool[N, W]."""
    offline = reassignment.view.partitions.offline
    if offline is None:
        return np.zeros(reassignment.replicas.shape, dtype=np.bool_)
    return members(reassignment.replicas, offline[reassignment.rows]) & (reassignment.replicas >= 0)


def _kept(column: Int32Array | None, rows: Int64Array, targets: Int32Array) -> Int32Array | None:
    """Return a column of brokers without those that hold no replica of these rows any more."""
    if column is None:
        return None
    kept = column.copy()
    mine = kept[rows]
    kept[rows] = packed(np.where(members(mine, targets), mine, PAD))
    return kept


def down_targets(plan: Reassignment, view: ClusterView | None = None) -> dict[BrokerId, Liveness]:
    """Return the down brokers among a plan's targets, ascending, by `view` or the plan's own list."""
    named = set(np.unique(plan.replicas).tolist())
    view = plan.view if view is None else view
    pairs = zip(view.brokers, view.liveness, strict=True)
    down = {one.id: how for one, how in pairs if how not in (Liveness.ALIVE, Liveness.STOPPING)}
    return {number: how for number, how in down.items() if int(number) in named}


def rollback_refused(plan: Reassignment) -> str:
    """Return why --execute refuses the way back from a plan as things stand; nothing where it takes it."""
    found = down_targets(plan.rollback(plan.view))
    if not found:
        return ""
    return (
        f"rollback.json names {named_down(found)}: --execute refuses the whole file until "
        f"{'it is' if len(found) == 1 else 'they are'} back"
    )


def named_down(found: Mapping[BrokerId, Liveness]) -> str:
    """Return brokers that are down in words, such as "fenced broker 3" or "broker 3 (in no ISR), 5 (fenced)"."""
    if set(found.values()) == {Liveness.FENCED}:
        return f"fenced {brokers_listed([int(number) for number in found])}"
    return brokers_listed((f"{number} ({how.value})" for number, how in found.items()), SHOWN_MAX)
