"""Run retention, the log cleaner and DeleteRecords on one broker.

A log manager lives as long as its process. It skips logs in a failed directory. A log that the cleaner failed on is
never cleaned again.

Source: Kafka core LogManager.cleanupLogs, checkpointLogStartOffsets, LogCleaner.CleanerThread.tryCleanFilthiestLog,
DelayedDeleteRecords, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

import attrs

from broker.error_codes import ErrorCode
from broker.errors import CorruptDataError, RefusedError
from broker.ids import LeaderEpoch, Offset, PartitionId, TopicPartition
from broker.units import MINUTE_MS, SECOND_MS, DurationMs, TimeMs
from log.compaction import CleanerManager
from log.partition.partition_log import PartitionLog
from log.storage import Storage
from replication.retention.messages import (
    DeleteRecords,
    DeleteRecordsResponse,
    DeletionExpired,
    DeletionsDue,
    RetentionDue,
)
from replication.roles.broker_role import BrokerRole
from replication.roles.leader import LeaderRole
from replication.roles.messages import Address, Message
from replication.roles.outbox import Outbox
from replication.roles.replica_log import ReplicaLog
from replication.rules.partition import UNKNOWN_OFFSET
from replication.rules.produce import low_watermark, take_order
from replication.rules.settings import Moment

LOOK_MS: Final = DurationMs(50)
DELETION_MS_MAX: Final = DurationMs(10 * SECOND_MS)
"""How long in ms DeleteRecords waits for followers; Kafka's admin client asks for 30 s."""
START_CHECKPOINT_MS: Final = MINUTE_MS
"""log.flush.start.offset.checkpoint.interval.ms."""


class LogHost(Protocol):
    """Define the part of a machine that its log manager uses."""

    role: BrokerRole | None
    storage: Storage

    @property
    def logs(self) -> Mapping[int, ReplicaLog]:
        """Return the logs that the running process has opened, by partition."""
        ...

    def checkpoint_log_starts(self) -> None:
        """Write log-start-offset-checkpoint: the start offsets that lie within a segment."""
        ...


@attrs.frozen
class _Waiting:
    order: DeleteRecords
    sender: Address
    offset: Offset


class LogManager:
    """Run retention, cleaner and DeleteRecords for the first `partition_count` partitions of one broker.

    Without `cleans` no log is compacted.
    """

    def __init__(self, host: LogHost, partition_count: int, *, cleans: bool = True) -> None:
        self._host = host
        self._partition_count = partition_count
        self._cleans = cleans
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._cleaner = CleanerManager(host.storage, self._logs)
        self._waiting: list[_Waiting] = []
        self._noted_ms: TimeMs | None = None

    def handle(self, message: Message, sender: Address, now_ms: TimeMs, out: Outbox) -> None:
        """Take a message."""
        if isinstance(message, RetentionDue):
            self._keep(now_ms)
        elif isinstance(message, DeleteRecords):
            self._on_order(message, sender, now_ms, out)
        elif isinstance(message, DeletionsDue):
            self._answer_done(now_ms, out)
            if self._waiting:
                out.wake(LOOK_MS, DeletionsDue())
        elif isinstance(message, DeletionExpired):
            expired = (message.partition, message.number, message.client)
            for each in [each for each in self._waiting if _name_of(each) == expired]:
                self._waiting.remove(each)
                _answer(each.order, each.sender, ErrorCode.REQUEST_TIMED_OUT, UNKNOWN_OFFSET, out)

    def on_gained(self, partition: int, leader_epoch: LeaderEpoch, now_ms: TimeMs, out: Outbox) -> None:
        """Do nothing: a new leader has no waiting requests."""

    def on_lost(self, partition: int, now_ms: TimeMs, out: Outbox) -> None:
        """Answer waiting requests of a partition with NOT_LEADER_OR_FOLLOWER, as its leader has changed."""
        for each in [each for each in self._waiting if each.order.partition == partition]:
            self._waiting.remove(each)
            _answer(each.order, each.sender, ErrorCode.NOT_LEADER_OR_FOLLOWER, UNKNOWN_OFFSET, out)

    # Retention and compaction.

    def _keep(self, now_ms: TimeMs) -> None:
        logs = self._usable()
        if self._cleans:
            self._clean(logs, now_ms)
        for log in logs.values():
            log.forget_old(now_ms)
            log.log.run_scheduled(now_ms)
        if self._noted_ms is None:
            self._noted_ms = now_ms
        elif abs(now_ms - self._noted_ms) >= START_CHECKPOINT_MS:
            self._noted_ms = now_ms
            self._host.checkpoint_log_starts()

    def _usable(self) -> dict[int, ReplicaLog]:
        role = self._host.role
        assert role is not None
        return {
            partition: log
            for partition, log in sorted(self._host.logs.items())
            if partition < self._partition_count and partition not in role.offline
        }

    def _clean(self, logs: Mapping[int, ReplicaLog], now_ms: TimeMs) -> None:
        named = {TopicPartition(f"topic-{partition}", PartitionId(0)): log for partition, log in logs.items()}
        self._logs.clear()
        self._logs.update((name, log.log) for name, log in named.items())
        # Each pass leaves its log less dirty, or takes it out of those that are looked at.
        while True:
            try:
                cleaned = self._cleaner.clean_filthiest(now_ms=now_ms)
            except (CorruptDataError, RefusedError):
                continue
            if cleaned is None:
                return
            named[cleaned.partition].note_cleaned()

    # Orders to delete.

    def _on_order(self, order: DeleteRecords, sender: Address, now_ms: TimeMs, out: Outbox) -> None:
        leader = self._leader(order.partition)
        if leader is None:
            _answer(order, sender, ErrorCode.NOT_LEADER_OR_FOLLOWER, UNKNOWN_OFFSET, out)
            return
        taken = take_order(leader.log.state, order.offset, deletes=leader.log.log.config.deletes)
        if taken.error is not ErrorCode.NONE:
            _answer(order, sender, taken.error, UNKNOWN_OFFSET, out)
            return
        leader.log.raise_start(taken.offset)
        is_looking = bool(self._waiting)
        self._waiting.append(_Waiting(order, sender, taken.offset))
        self._answer_done(now_ms, out)
        if self._waiting:
            out.wake(DELETION_MS_MAX, DeletionExpired(order.partition, order.number, sender))
            if not is_looking:
                out.wake(LOOK_MS, DeletionsDue())

    def _answer_done(self, now_ms: TimeMs, out: Outbox) -> None:
        role = self._host.role
        assert role is not None
        moment = Moment(now_ms, role.image.brokers)
        for each in list(self._waiting):
            leader = self._leader(each.order.partition)
            assert leader is not None, each
            reached = low_watermark(leader.state, leader.log.state, moment)
            if reached >= each.offset:
                self._waiting.remove(each)
                _answer(each.order, each.sender, ErrorCode.NONE, reached, out)

    def _leader(self, partition: int) -> LeaderRole | None:
        role = self._host.role
        part = None if role is None else role.roles.get(partition)
        return part if isinstance(part, LeaderRole) else None


def _name_of(waiting: _Waiting) -> tuple[int, int, Address]:
    return waiting.order.partition, waiting.order.number, waiting.sender


def _answer(order: DeleteRecords, sender: Address, error: ErrorCode, reached: Offset, out: Outbox) -> None:
    out.send(sender, DeleteRecordsResponse(order.partition, order.number, error, reached))
