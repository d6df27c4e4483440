"""Show one partition of a running simulation: its state, its replicas' logs, and why replicas are out of sync.

AR = ISR + OSR, always. What only a leader knows (how far a replica lags) is None without a leader.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from broker.ids import NO_LEADER, BrokerId, LeaderEpoch, Offset
from broker.units import SizeBytes, TimeMs
from log.batches.in_buffer import batches_in
from log.partition.partition_log import PartitionLog
from log.record import Record
from replication.roles.leader import LeaderRole
from replication.rules.out_of_sync import OutOfSync, Why, out_of_sync
from replication.rules.partition import BrokerStatus, PartitionEpoch, PartitionState
from replication.rules.settings import Moment
from replication.simulation.cluster import Cluster
from replication.simulation.recording import IsrShrink, Recording

_READ_BYTES: Final = SizeBytes(1 << 26)


@attrs.frozen
class ReplicaView:
    """Hold one replica's log bounds, as its broker has it open; `is_up` is True while that broker runs."""

    broker: BrokerId
    is_up: bool
    start_offset: Offset
    high_watermark: Offset
    end_offset: Offset


@attrs.frozen
class OutOfSyncView:
    """Hold an out-of-sync replica's lag and its removal from the ISR; None if it was never in the ISR."""

    now: OutOfSync
    left: IsrShrink | None

    def __str__(self) -> str:
        lag = "" if self.now.lag_records is None else f", {self.now.lag_records} records"
        lag += "" if self.now.lag_ms is None else f", {self.now.lag_ms} ms"
        left = "" if self.left is None else f"; left at {self.left.at_ms} ms, as {self.left.by.value}"
        return f"{self.now.broker} ({self.now.why.name}{lag}{left})"


@attrs.frozen(kw_only=True)
class PartitionView:
    """Hold one partition at one moment.

    `replicas` is the AR in assignment order. `high_watermark` is the leader's, None without a leader. `logs` holds the
    replicas whose broker has the log open or had it open when it died.
    """

    at_ms: TimeMs
    partition: int
    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]
    osr: tuple[OutOfSyncView, ...]
    elr: tuple[BrokerId, ...]
    leader: BrokerId | None
    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    high_watermark: Offset | None
    logs: tuple[ReplicaView, ...]

    def __str__(self) -> str:
        leader = "none" if self.leader is None else str(self.leader)
        osr = ", ".join(map(str, self.osr)) or "none"
        return (
            f"partition {self.partition} at {self.at_ms} ms: leader {leader} (epoch {self.leader_epoch}), "
            f"ISR {_listed(self.isr)}, OSR {osr}, ELR {_listed(self.elr)}, high watermark {self.high_watermark}, "
            f"ends {', '.join(f'{log.broker}:{log.end_offset}' for log in self.logs)}"
        )


def partition_view(cluster: Cluster, recording: Recording, partition: int) -> PartitionView | None:
    """Return a partition as it is now, None before it is created. Cost: linear in the replicas and in the record."""
    state = cluster.controller.image.partitions.get(partition)
    if state is None:
        return None
    role = _leader_of(cluster, partition, state)
    out = _out_of_sync(cluster, state, role)
    return PartitionView(
        at_ms=cluster.now_ms,
        partition=partition,
        replicas=state.replicas,
        isr=state.isr,
        osr=tuple(OutOfSyncView(each, recording.last_shrink_of(partition, each.broker)) for each in out),
        elr=state.elr,
        leader=None if state.leader == NO_LEADER else state.leader,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        high_watermark=None if role is None else role.log.log.high_watermark,
        logs=_logs(cluster, partition, state),
    )


def _leader_of(cluster: Cluster, partition: int, state: PartitionState) -> LeaderRole | None:
    """Return the leader's role once the broker knows that it leads."""
    node = cluster.nodes.get(state.leader)
    role = None if node is None or node.role is None else node.role.roles.get(partition)
    return role if isinstance(role, LeaderRole) and role.state.leader_epoch == state.leader_epoch else None


def _out_of_sync(cluster: Cluster, state: PartitionState, role: LeaderRole | None) -> tuple[OutOfSync, ...]:
    known: dict[BrokerId, OutOfSync] = {}
    brokers = cluster.controller.image.brokers
    if role is not None:
        node = cluster.nodes[state.leader]
        moment = Moment(node.now_ms, brokers)
        # The leader may not have heard yet who left; it is asked about all that the controller takes for out of sync.
        leader = attrs.evolve(role.state, isr=state.isr)
        known = {each.broker: each for each in out_of_sync(leader, role.log.state, moment, cluster.options.settings)}
    unknown = (OutOfSync(broker, _why(brokers.get(broker)), None, None) for broker in state.out_of_sync)
    return tuple(known.get(each.broker, each) for each in unknown)


def _why(status: BrokerStatus | None) -> Why:
    """Return why a replica is out of sync as far as the metadata shows."""
    if status is None:
        return Why.UNREGISTERED
    if status.fenced:
        return Why.FENCED
    return Why.STOPPING if status.shutting_down else Why.NOT_FETCHED


def _logs(cluster: Cluster, partition: int, state: PartitionState) -> tuple[ReplicaView, ...]:
    nodes = ((cluster.nodes[broker], cluster.nodes[broker].logs.get(partition)) for broker in state.replicas)
    return tuple(
        ReplicaView(
            node.broker, node.role is not None, log.log.log_start_offset, log.log.high_watermark, log.log.log_end_offset
        )
        for node, log in nodes
        if log is not None
    )


def _listed(brokers: tuple[BrokerId, ...]) -> str:
    return ",".join(map(str, brokers)) or "none"


def records_of(log: PartitionLog, end_offset: Offset, start_offset: Offset = Offset(0)) -> Iterator[Record]:  # noqa: B008 - a NewType of int.
    """Yield the records of a log from `start_offset`, or where it begins, to `end_offset`, which is not read."""
    offset = first_offset = Offset(max(start_offset, log.log_start_offset))
    while offset < end_offset:
        for batch in batches_in(bytes(log.read(offset, _READ_BYTES).records)):
            if batch.base_offset >= end_offset:
                return
            yield from (record for record in batch.records() if record.offset >= first_offset)
            offset = batch.next_offset
