"""Run retention and compaction in a simulation: their settings, their intervals and their faults.

Draws come from separate streams. DeleteRecords asks for an offset between the leader's log start offset and one past
its high watermark, so that some requests are refused; the offsets are the leader's, as a client learns them.

Source: ours; the settings are those of `replication.retention.policy`.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.entropy import SplitMix64, derive
from broker.ids import BrokerId, Offset
from broker.units import SECOND_MS, DurationMs, SizeBytes
from replication.retention.delete_records_client import DeleteRecordsClient
from replication.retention.log_manager import LogManager
from replication.retention.messages import DeleteRecordsOrder, RetentionDue
from replication.retention.policy import NO_LIMIT, AutoOffsetReset, Retention
from replication.roles.follower import FollowerRole
from replication.roles.hosted import Host
from replication.roles.messages import CONTROLLER, FetchResponse, Message, MetadataFetchResponse, NodeId
from replication.roles.outbox import Outbox
from replication.rules.produce import UP_TO_HIGH_WATERMARK
from replication.simulation.cluster import Cluster
from replication.simulation.fault import Fault
from replication.simulation.node import DEFAULT_CONFIG
from replication.simulation.options import FaultKind, Options

RETENTION_KINDS: Final = (FaultKind.DELETE_RECORDS, FaultKind.RETENTION, FaultKind.RETENTION_AT_CHANGE)
_DRAW_STREAM: Final = 13
_DELETER_STREAM: Final = 14
_ALL_ONE_IN: Final = 4
"""One DeleteRecords in this many asks for everything below the high watermark."""
_RETENTION_MS: Final = (NO_LIMIT, 10 * SECOND_MS, 20 * SECOND_MS, 40 * SECOND_MS, 90 * SECOND_MS)
_FAULT_MS_MEAN: Final = {
    FaultKind.DELETE_RECORDS: 40_000,
    FaultKind.RETENTION: 40_000,
    FaultKind.RETENTION_AT_CHANGE: 20_000,
}


def drawn_retention(seed: int) -> Retention:
    """Return the retention settings that a seed draws."""
    entropy = SplitMix64(derive(seed, _DRAW_STREAM))
    policy = entropy.next_int_bound(3)
    return Retention(
        retention_ms=DurationMs(_RETENTION_MS[entropy.next_int_bound(len(_RETENTION_MS))]),
        retention_bytes=SizeBytes((NO_LIMIT, NO_LIMIT, 2_000, 6_000)[entropy.next_int_bound(4)]),
        compacts=policy > 0,
        deletes=policy < 2,
        segment_bytes=SizeBytes((600, 1_000, 3_000)[entropy.next_int_bound(3)]),
        delete_retention_ms=DurationMs((0, 5, 30)[entropy.next_int_bound(3)] * SECOND_MS),
        check_ms=DurationMs((2, 5, 15)[entropy.next_int_bound(3)] * SECOND_MS),
        key_count=(2, 8, 30)[entropy.next_int_bound(3)],
        reset=tuple(AutoOffsetReset)[entropy.next_int_bound(3)],
    )


def with_retention(options: Options, retention: Retention | None = None) -> Options:
    """Return the options with retention; it is drawn from the seed if None is given.

    A run under faults gets the faults of retention too. Followers fetch at most a segment's size at a time, as Kafka's
    settings ensure by their sizes.
    """
    kept = drawn_retention(options.seed) if retention is None else retention
    faults = tuple((kind, DurationMs(mean)) for kind, mean in _FAULT_MS_MEAN.items()) if options.fault_ms else ()
    role_settings = attrs.evolve(
        options.role_settings, fetch_bytes_max=min(options.role_settings.fetch_bytes_max, kept.segment_bytes)
    )
    return attrs.evolve(options, retention=kept, fault_ms=(*options.fault_ms, *faults), role_settings=role_settings)


def join_retention(cluster: Cluster, retention: Retention) -> None:
    """Let every broker of a cluster that has not begun run retention and cleaner."""
    options = cluster.options
    config = retention.log_config(DEFAULT_CONFIG)
    for place, (broker, node) in enumerate(sorted(cluster.nodes.items())):
        node.log_configs = dict.fromkeys(range(options.partitions), config)
        first_ms = retention.check_ms * (place + 1) // options.brokers
        run_retention_regularly(cluster, broker, first_ms, retention.check_ms)

    def make(host: Host) -> LogManager:
        return LogManager(cluster.nodes[host.broker], options.partitions)

    cluster.host(make)


def run_retention_regularly(cluster: Cluster, broker: BrokerId, at_ms: int, check_ms: DurationMs) -> None:
    """Send RetentionDue to a broker at `at_ms`, if it runs then, and again after each `check_ms`."""

    def look() -> None:
        node = cluster.nodes[broker]
        if node.role is not None and not node.is_paused:
            cluster.deliver(NodeId(broker), RetentionDue())
        cluster.at(cluster.now_ms + check_ms, look)

    cluster.at(at_ms, look)


class RetentionFaults:
    """Apply the faults of retention to a cluster; do nothing without retention."""

    def __init__(self, cluster: Cluster) -> None:
        self.armed: list[BrokerId] = []
        """The brokers that run retention at the next change of a role or log."""
        self._cluster = cluster
        self._parts: dict[tuple[BrokerId, int], object] = {}
        self._deleter: NodeId | None = None
        if cluster.options.retention is not None:
            entropy = SplitMix64(derive(cluster.options.seed, _DELETER_STREAM))
            self._deleter = cluster.join(lambda _: DeleteRecordsClient(cluster.options.brokers, entropy))
            cluster.watches.append(self._after_event)

    def strike(self, fault: Fault) -> None:
        """Apply a fault."""
        if self._deleter is None:
            return
        broker = BrokerId(fault.target)
        if fault.kind is FaultKind.DELETE_RECORDS:
            self._delete(fault, self._deleter)
        elif fault.kind is FaultKind.RETENTION_AT_CHANGE:
            self.armed.append(broker)
        else:
            self._keep(broker)

    def _keep(self, broker: BrokerId) -> None:
        cluster = self._cluster
        cluster.trace.line(cluster.now_ms, f"broker {broker} looks after its logs")
        cluster.deliver(NodeId(broker), RetentionDue())

    def _delete(self, fault: Fault, deleter: NodeId) -> None:
        cluster = self._cluster
        log = cluster.leader_log(fault.target)
        if log is None:
            return
        luck = abs(fault.choice)
        offset = UP_TO_HIGH_WATERMARK
        if luck % _ALL_ONE_IN:
            start, high = log.log.log_start_offset, log.log.high_watermark
            offset = Offset(start + luck // _ALL_ONE_IN % (high - start + 2))
        cluster.trace.line(cluster.now_ms, f"partition {fault.target}: records below {offset} are to be deleted")
        cluster.deliver(deleter, DeleteRecordsOrder(fault.target, offset))

    def _after_event(self, cluster: Cluster, node: NodeId, message: Message, _out: Outbox) -> None:
        """Check after each event whether an armed fault is due."""
        if not self.armed or node >= CONTROLLER or BrokerId(node) not in self.armed:
            return
        broker = BrokerId(node)
        role = cluster.nodes[broker].role
        if role is None:
            return
        is_due = isinstance(message, FetchResponse) and message.answer.diverging is not None
        if isinstance(message, MetadataFetchResponse):
            for partition, part in role.roles.items():
                epoch = part.state.leader_epoch
                seen = (type(part) is FollowerRole, epoch)
                is_due |= self._parts.get((broker, partition), seen) != seen
                self._parts[broker, partition] = seen
        if is_due:
            self.armed.remove(broker)
            self._keep(broker)
