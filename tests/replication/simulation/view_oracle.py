"""The view of each partition of a run, checked by an oracle that reads states and calls no rule but the one under test.

ISR and OSR are the replicas, reason and lag of a replica out of sync follow from the leader's facts, and a consumer in
a rack is sent to the follower there.

Source: KIP-392 (RackAwareReplicaSelector, ReplicaManager.findPreferredReadReplica) for reads; the order of reasons is
that of `replication.rules.out_of_sync.Why`.
"""

from __future__ import annotations

from broker.ids import Offset
from replication.checkers.view import leader_role
from replication.roles.leader import LeaderRole
from replication.rules.follower_read import preferred_replica
from replication.rules.partition import Follower
from replication.rules.settings import Moment
from replication.simulation import Simulation
from replication.simulation.cluster import Cluster
from replication.simulation.views import PartitionView


def view_noticed(simulation: Simulation) -> str:
    """Return what is wrong with the view of some partition, "" if nothing."""
    cluster = simulation.cluster
    for partition in sorted(cluster.controller.image.partitions):
        view = simulation.partition(partition)
        assert view is not None
        outside = tuple(each.now.broker for each in view.osr)
        if outside != tuple(broker for broker in view.replicas if broker not in view.isr):
            return f"of {view.replicas} {view.isr} are in sync and {outside} are not"
        node = None if view.leader is None else cluster.nodes[view.leader]
        role = None if node is None else leader_role(node, partition)
        if node is None or role is None or role.state.leader_epoch != view.leader_epoch:
            continue
        moment = Moment(node.now_ms, cluster.controller.image.brokers)
        told = _lags_noticed(cluster, view, role, moment) or _reads_noticed(cluster, role, moment)
        if told:
            return f"partition {partition} at {cluster.now_ms} ms: {told}"
    return ""


def _lags_noticed(cluster: Cluster, view: PartitionView, role: LeaderRole, moment: Moment) -> str:
    followers = {each.broker: each for each in role.state.followers}
    for each in view.osr:
        follower = followers.get(each.now.broker)
        if follower is None:
            continue
        expected = _expected(cluster, follower, role.log.log.log_end_offset, moment)
        if (each.now.why.name, each.now.lag_records, each.now.lag_ms) != expected:
            return f"{each} is told, {expected} is so"
    return ""


def _expected(
    cluster: Cluster, follower: Follower, end_offset: int, moment: Moment
) -> tuple[str, int | None, int | None]:
    """Return why a follower is out of sync, and its lag in records and in ms."""
    settings, status = cluster.options.settings, moment.brokers.get(follower.broker)
    has_fetched = follower.end_offset >= 0
    behind = end_offset - follower.end_offset if has_fetched else None
    late_ms = moment.now_ms - follower.caught_up_at_ms if follower.caught_up_at_ms > 0 else None
    is_there = settings.rules.caught_up_at_end_offset and behind == 0
    reasons = {
        "UNREGISTERED": status is None,
        "FENCED": status is not None and status.fenced,
        "STOPPING": status is not None and status.shutting_down,
        "NOT_FETCHED": not has_fetched,
        "RESTARTED": status is not None and follower.broker_epoch not in (-1, status.epoch),
        "JOINING": is_there or (late_ms is not None and late_ms <= settings.lag_ms_max),
        "STUCK": moment.now_ms - follower.fetched_at_ms > settings.lag_ms_max,
        "SLOW": True,
    }
    return next(name for name, holds in reasons.items() if holds), behind, late_ms


def _reads_noticed(cluster: Cluster, role: LeaderRole, moment: Moment) -> str:
    rules, leader, end = cluster.options.settings.rules, role.state, role.log.log.log_end_offset
    racks = {broker: status.rack for broker, status in moment.brokers.items()}
    for rack in sorted({*racks.values(), ""}):
        for offset in (role.log.log.log_start_offset, end // 2, end):
            told = preferred_replica(leader, Offset(offset), rack, moment, rules)
            near = (
                []
                if rack in ("", racks.get(leader.broker, "")) or not rules.follower_reads
                else [
                    (each.end_offset, each.caught_up_at_ms, -each.broker)
                    for each in leader.followers
                    if racks.get(each.broker, "") == rack
                    and each.broker in leader.isr
                    and each.start_offset <= offset <= each.end_offset
                    and not (rules.fenced_never_preferred and moment.brokers[each.broker].fenced)
                ]
            )
            expected = -max(near)[2] if near else None
            if told != expected:
                return f"a consumer in rack {rack!r} is sent from {leader.broker} to {told}, and not to {expected}"
    return ""
