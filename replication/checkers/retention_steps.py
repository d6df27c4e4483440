"""Check the invariants after every event where retention and compaction change logs.

Those of `steps`, whose checker this one extends. A follower counts as having used a response when it sends the next
request.
"""

from __future__ import annotations

from collections.abc import Iterator

from broker.error_codes import ErrorCode
from broker.ids import BrokerId
from broker.units import TimeMs
from replication.checkers import replicas
from replication.checkers.expiry import wrong_retention
from replication.checkers.observed_log import LogChange, ObservedLog
from replication.checkers.reference_log import ReferenceLog
from replication.checkers.retention_logs import check_retained_log, early_tombstones
from replication.checkers.retention_model import BatchReader, RetainedObservedLog, RetainedReferenceLog
from replication.checkers.steps import StepChecker
from replication.checkers.view import CheckedCluster, NodeView, leader_role
from replication.retention.messages import DeleteRecords, DeleteRecordsResponse, RetentionDue
from replication.retention.policy import Retention
from replication.roles.messages import (
    CONTROLLER,
    Fetch,
    FetchResponse,
    Message,
    NodeId,
    Produce,
    ProduceResponse,
)
from replication.roles.outbox import Outbox
from replication.roles.replica_log import ReplicaLog
from replication.rules.produce import UP_TO_HIGH_WATERMARK
from replication.rules.settings import PartitionSettings


class RetentionStepChecker(StepChecker):
    """Check every step of logs under `retention`; clocks show `wall_clock_ms` at the start."""

    def __init__(self, settings: PartitionSettings, retention: Retention, wall_clock_ms: int) -> None:
        super().__init__(settings)
        self._retention = retention
        self._wall_clock_ms = wall_clock_ms
        self._batches = BatchReader()
        self._has_jumped = False

    def after(self, cluster: CheckedCluster, node: NodeId, message: Message, out: Outbox) -> None:
        """Check the possible effects of `message` on `node`; `out` holds the node's sent messages."""
        if node < CONTROLLER:
            machine = cluster.nodes[BrokerId(node)]
            if type(message) is DeleteRecords:
                self._note_order(cluster, machine, message)
            elif type(message) is RetentionDue:
                self._check_retention(cluster, machine)
            elif type(message) is FetchResponse:
                self._check_start(cluster, machine, message, out)
            for _, each in out.sent:
                if type(each) is FetchResponse and each.answer.error is ErrorCode.NONE:
                    self._kept(each.partition).note_start(each.answer.start_offset)
                elif type(each) is DeleteRecordsResponse:
                    self._check_deleted(cluster, machine, each)
                elif type(each) is ProduceResponse and type(message) is Produce:
                    self._note_replaced(machine, message, each)
        super().after(cluster, node, message, out)

    def _check_retention(self, cluster: CheckedCluster, node: NodeView) -> None:
        """Check what retention has just taken from the logs of a broker, and what it has left."""
        now_ms = TimeMs(self._wall_clock_ms + cluster.now_ms + node.clock_ahead_ms)
        for partition, log in node.logs.items():
            observed = self._kept(partition).observed_logs.get(node.broker)
            is_usable = node.role is not None and partition not in node.role.offline
            if is_usable and isinstance(observed, RetainedObservedLog) and observed.log is log:
                for what in wrong_retention(observed, self._retention, now_ms):
                    self._find(cluster, "K9", partition, what)

    def _kept(self, partition: int) -> RetainedReferenceLog:
        reference = self._reference(partition)
        assert isinstance(reference, RetainedReferenceLog)
        return reference

    def _new_reference(self, partition: int) -> ReferenceLog:
        return RetainedReferenceLog(partition)

    def _new_observed(
        self, reference: ReferenceLog, node: NodeView, log: ReplicaLog, former: ObservedLog | None
    ) -> ObservedLog:
        assert isinstance(reference, RetainedReferenceLog)
        return RetainedObservedLog(reference, self._batches, log, (node.broker, node.incarnation), former)

    def _check_log(
        self, reference: ReferenceLog, node: NodeView, observed: ObservedLog, change: LogChange, agreed_before: int
    ) -> Iterator[replicas.Broken]:
        assert isinstance(reference, RetainedReferenceLog)
        assert isinstance(observed, RetainedObservedLog)
        yield from check_retained_log(reference, node, observed, change, agreed_before)

    def _look(self, cluster: CheckedCluster, node: NodeView, partition: int, *, by_metadata: bool = False) -> None:
        super()._look(cluster, node, partition, by_metadata=by_metadata)
        self._has_jumped = self._has_jumped or node.clock_ahead_ms != 0
        reference = self._kept(partition)
        observed = reference.observed_logs[node.broker]
        assert isinstance(observed, RetainedObservedLog)
        if observed.new_gaps and not self._has_jumped:
            now = (cluster.now_ms, self._retention.delete_retention_ms)
            for code, what in early_tombstones(reference, observed, now):
                self._find(cluster, code, partition, what)
        observed.new_gaps = []
        if observed.tombstones:
            for value in observed.tombstones:
                reference.cleaned_ms.setdefault(value, cluster.now_ms)
            observed.tombstones.clear()
        role = leader_role(node, partition)
        if role is not None and role.state.leader_epoch >= reference.clean_from_epoch:
            # A follower joins the ISR before it hears of the start: below it, it may hold records of an older epoch.
            start = min(role.log.log.log_start_offset, len(reference.committed))
            reference.deletable_end = max(reference.deletable_end, start)

    def _shown_in(self, records: bytes) -> Iterator[tuple[int, int]]:
        for batch in self._batches.batches(records):
            for held in batch.records:
                yield held.offset, held.entry.value

    def _check_shown(self, cluster: CheckedCluster, reference: ReferenceLog, offset: int, value: int) -> None:
        if offset >= self._kept(reference.partition).unpromised_end:
            super()._check_shown(cluster, reference, offset, value)

    def _note_order(self, cluster: CheckedCluster, node: NodeView, order: DeleteRecords) -> None:
        role = leader_role(node, order.partition)
        if role is None:
            return
        high = role.log.log.high_watermark
        offset = high if order.offset == UP_TO_HIGH_WATERMARK else order.offset
        reference = self._kept(order.partition)
        reference.note_start(min(offset, high))
        reference.ordered[order.number] = offset, {broker: each.incarnation for broker, each in cluster.nodes.items()}

    def _check_start(self, cluster: CheckedCluster, node: NodeView, told: FetchResponse, out: Outbox) -> None:
        """Check that the log start of a follower that has used a response is at or above its leader's."""
        answer, log = told.answer, node.logs.get(told.partition)
        if log is None or answer.error is not ErrorCode.NONE or answer.diverging is not None:
            return
        asks_on = any(type(each) is Fetch and each.partition == told.partition for _, each in out.sent)
        start, high = log.log.log_start_offset, log.log.high_watermark
        if asks_on and start < min(answer.start_offset, high):
            what = f"broker {node.broker} has a log from {start} on, its leader's begins at {answer.start_offset}"
            self._find(cluster, "K3", told.partition, what)

    def _note_replaced(self, node: NodeView, write: Produce, told: ProduceResponse) -> None:
        """Note a write that a leader acknowledges below its log start, where another record stood.

        The leader has learned of its log start, not that its record below was replaced: a retry is a duplicate to it,
        as producers stay known when the log start rises (ProducerStateManager.onLogStartOffsetIncremented, 4.3.1).
        """
        role, reference = leader_role(node, told.partition), self._kept(told.partition)
        if role is None or told.number != write.number or told.error is not ErrorCode.NONE:
            return
        if told.offset >= min(role.log.log.log_start_offset, len(reference.committed)):
            return
        for place, (_, value) in enumerate(self._shown_in(write.records), told.offset):
            if reference.committed[place].value != value:
                reference.ended[value] = "retry of a record below the log start, whose place another one had taken"

    def _check_deleted(self, cluster: CheckedCluster, node: NodeView, told: DeleteRecordsResponse) -> None:
        """Check an answered DeleteRecords on every ISR member that has not restarted since the request.

        A deposed leader waits for those that its own metadata take for live, and knows no other ISR: what it answers is
        held against its own log alone (Partition.lowWatermarkIfLeader).
        """
        reference, role = self._kept(told.partition), leader_role(node, told.partition)
        if told.error is not ErrorCode.NONE or reference.state is None:
            return
        offset, incarnations = reference.ordered[told.number]
        is_deposed = role is not None and role.state.leader_epoch < reference.state.leader_epoch
        for broker in sorted({node.broker, *(() if is_deposed else reference.state.isr)}):
            machine = cluster.nodes[broker]
            log = machine.logs.get(told.partition)
            if log is None or machine.role is None or machine.incarnation != incarnations[broker]:
                continue
            if log.log.log_start_offset < offset or told.low_watermark < offset:
                what = f"deletion up to {offset} is answered, broker {broker} has a log from {log.log.log_start_offset}"
                self._find(cluster, "K4", told.partition, what)
