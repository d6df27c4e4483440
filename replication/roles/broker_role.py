"""One broker's process: it registers, reports, follows the metadata, and plays its part in each partition.

It decides which role the broker has in each partition, from the metadata that it has read; the roles do the rest.

Goals, most important first
1. The roles follow the metadata: a batch of records is published as a whole, each partition in its last state.
2. A broker serves nobody before it is registered and has read its own registration.

Constraints: `handle` takes one message and writes what follows into an outbox. A message for a partition that the
broker has no part in is answered NOT_LEADER_OR_FOLLOWER, or dropped if nobody waits for an answer.

How: a started broker knows the logs on its disk. It asks for an epoch, again every `fetch_backoff_ms` until it gets
one; then it reads metadata from the beginning and reports every `heartbeat_ms`, from when on the controller may
unfence it. `wants_shutdown` makes it ask to stop; `may_stop` tells that it may.

Left out: the other things a broker does; log directories; deletion of stray logs.

Source: Kafka core BrokerServer, BrokerLifecycleManager, BrokerMetadataPublisher and ReplicaManager.applyDelta, commit
1eb7644 (2024-10).
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from broker.error_codes import ErrorCode
from broker.errors import UsageError
from broker.ids import NO_LEADER, BrokerEpoch, BrokerId, Offset
from broker.registration import BrokerState, Heartbeat
from broker.units import DurationMs, TimeMs
from replication.epochs import UNDEFINED_END
from replication.fencing import StopProof
from replication.fetch import FetchAnswer
from replication.leadership import become_follower, become_leader, unassigned
from replication.partition import UNKNOWN_OFFSET, PartitionState
from replication.roles.consumers import answer_consumer
from replication.roles.follower import FollowerRole
from replication.roles.leader import LeaderRole
from replication.roles.messages import (
    CONTROLLER,
    Address,
    AskBounds,
    AskEpochEnd,
    AskLeader,
    AskMetadata,
    Beat,
    BeatDue,
    BeatTold,
    BoundsTold,
    CheckpointDue,
    Consume,
    Consumed,
    EpochEndTold,
    Fetch,
    FetchDue,
    Fetched,
    HoldOver,
    IsrRetryDue,
    IsrTold,
    LagCheckDue,
    LeaderTold,
    Message,
    MetadataDue,
    MetadataTold,
    Produce,
    Produced,
    Register,
    RegisterDue,
    Registered,
    WriteExpired,
)
from replication.roles.metadata import MetadataImage
from replication.roles.outbox import Outbox
from replication.roles.replica_log import ReplicaLog
from replication.roles.settings import RoleSettings
from replication.terms import Moment

OpenLog = Callable[[int], ReplicaLog]
"""Opens, or makes, the log of a partition on this broker's disk."""


@attrs.frozen
class BrokerStart:
    """What a process is started with: who it is, what its disk proves, and how it gets at its logs."""

    broker: BrokerId
    incarnation: str
    proof: StopProof
    open_log: OpenLog
    drop_log: Callable[[int], None]
    checkpoint: Callable[[dict[int, Offset]], None]


class BrokerRole:
    """One life of a broker. `roles` holds its part in each partition, `image` the metadata that it has read."""

    def __init__(self, start: BrokerStart, settings: RoleSettings) -> None:
        self.start = start
        self.broker = start.broker
        self.settings = settings
        self.epoch: BrokerEpoch | None = None
        self.image = MetadataImage()
        self.roles: dict[int, LeaderRole | FollowerRole] = {}
        self.wants_shutdown = False
        self.may_stop = False
        self._question = 0

    def begin(self, out: Outbox) -> None:
        """Start: ask for an epoch."""
        self._register(out)
        out.wake(self.settings.checkpoint_ms, CheckpointDue())
        out.wake(self._lag_check_ms, LagCheckDue())

    def handle(self, message: Message, sender: Address, now_ms: TimeMs, out: Outbox) -> None:
        """Take one message."""
        moment = Moment(now_ms, self.image.brokers)
        if isinstance(message, Fetch):
            self._on_fetch(message, sender, moment, out)
        elif isinstance(message, Fetched):
            if isinstance(role := self.roles.get(message.partition), FollowerRole):
                role.on_fetched(message, moment, out)
        elif isinstance(message, HoldOver):
            if isinstance(role := self.roles.get(message.partition), LeaderRole):
                role.on_hold_over(message, moment, out)
        elif isinstance(message, FetchDue):
            if isinstance(role := self.roles.get(message.partition), FollowerRole):
                role.on_fetch_due(message, out)
        elif isinstance(message, Produce):
            self._on_produce(message, sender, moment, out)
        elif isinstance(message, Consume):
            self._on_consume(message, sender, out)
        else:
            self._on_rarer(message, sender, moment, out)

    def _on_rarer(self, message: Message, sender: Address, moment: Moment, out: Outbox) -> None:
        if isinstance(message, MetadataTold):
            self._on_metadata(message, moment, out)
        elif isinstance(message, MetadataDue):
            if message.number == self._question:
                self._ask_metadata(out)
        elif isinstance(message, BeatDue):
            self._beat(out)
            out.wake(self.settings.heartbeat_ms, BeatDue())
        elif isinstance(message, BeatTold):
            self.may_stop = self.may_stop or (self.wants_shutdown and message.state is BrokerState.SHUTDOWN_NOW)
        elif isinstance(message, LagCheckDue):
            for _, role in sorted(self.roles.items()):
                if isinstance(role, LeaderRole):
                    role.on_lag_check(moment, out)
            out.wake(self._lag_check_ms, LagCheckDue())
        elif isinstance(message, CheckpointDue):
            ends = {partition: role.log.log.high_watermark for partition, role in sorted(self.roles.items())}
            self.start.checkpoint(ends)
            out.wake(self.settings.checkpoint_ms, CheckpointDue())
        elif isinstance(message, Registered):
            self._on_registered(message, out)
        elif isinstance(message, RegisterDue):
            if self.epoch is None:
                self._register(out)
        elif isinstance(message, AskLeader):
            known = self.image.partitions.get(message.partition)
            leader = NO_LEADER if known is None else known.leader
            out.send(sender, LeaderTold(message.partition, message.number, leader))
        else:
            self._on_partition_message(message, sender, moment, out)

    def _on_partition_message(self, message: Message, sender: Address, moment: Moment, out: Outbox) -> None:
        if isinstance(message, AskEpochEnd):
            if isinstance(role := self.roles.get(message.partition), LeaderRole):
                role.on_ask_epoch_end(message, sender, out)
            else:
                error = ErrorCode.NOT_LEADER_OR_FOLLOWER
                out.send(sender, EpochEndTold(message.partition, message.number, error, UNDEFINED_END))
        elif isinstance(message, AskBounds):
            if isinstance(role := self.roles.get(message.partition), LeaderRole):
                role.on_ask_bounds(message, sender, out)
            else:
                error = ErrorCode.NOT_LEADER_OR_FOLLOWER
                out.send(sender, BoundsTold(message.partition, message.number, error, UNKNOWN_OFFSET, UNKNOWN_OFFSET))
        elif isinstance(message, EpochEndTold):
            if isinstance(role := self.roles.get(message.partition), FollowerRole):
                role.on_epoch_end(message, moment, out)
        elif isinstance(message, BoundsTold):
            if isinstance(role := self.roles.get(message.partition), FollowerRole):
                role.on_bounds(message, moment, out)
        elif isinstance(message, IsrTold):
            if isinstance(role := self.roles.get(message.partition), LeaderRole):
                role.on_isr_told(message, moment, out)
        elif isinstance(message, IsrRetryDue):
            if isinstance(role := self.roles.get(message.partition), LeaderRole):
                role.on_isr_retry(message, out)
        elif isinstance(message, WriteExpired):
            if isinstance(role := self.roles.get(message.partition), LeaderRole):
                role.on_write_expired(message, out)
        else:
            raise UsageError(f"a broker takes no {type(message).__name__}")

    # Registration and metadata.

    def _register(self, out: Outbox) -> None:
        out.send(Address(CONTROLLER), Register(self.broker, self.start.incarnation, self.start.proof))
        out.wake(self.settings.answer_ms_max, RegisterDue())

    def _on_registered(self, told: Registered, out: Outbox) -> None:
        if told.epoch is None or self.epoch is not None:
            return
        self.epoch = told.epoch
        self._ask_metadata(out)
        self._beat(out)
        out.wake(self.settings.heartbeat_ms, BeatDue())

    def _beat(self, out: Outbox) -> None:
        assert self.epoch is not None
        heartbeat = Heartbeat(metadata_offset=self.image.offset, want_shutdown=self.wants_shutdown)
        out.send(Address(CONTROLLER), Beat(self.broker, self.epoch, heartbeat))

    def _ask_metadata(self, out: Outbox) -> None:
        self._question += 1
        out.send(Address(CONTROLLER), AskMetadata(self.broker, self._question, self.image.offset))
        # The controller answers when it has news; a lost question or answer is found out by asking again.
        out.wake(self.settings.answer_ms_max, MetadataDue(self._question))

    def _on_metadata(self, told: MetadataTold, moment: Moment, out: Outbox) -> None:
        if told.number != self._question or told.offset != self.image.offset:
            return
        is_first = self.image.offset == 0
        changed = self.image.apply(told.records)
        moment = Moment(moment.now_ms, self.image.brokers)
        for partition in changed:
            self._publish(partition, self.image.partitions[partition], moment, out)
        if is_first:
            # Caught up with its own registration, it asks to be unfenced without waiting for the next heartbeat.
            self._beat(out)
        self._ask_metadata(out)

    def _publish(self, partition: int, news: PartitionState, moment: Moment, out: Outbox) -> None:
        assert self.epoch is not None
        role = self.roles.get(partition)
        if self.broker not in news.replicas:
            if isinstance(role, LeaderRole):
                role.resign(news, out)
            self.roles.pop(partition, None)
            self.start.drop_log(partition)
        elif news.leader == self.broker:
            self._lead(partition, news, moment, out)
        else:
            self._follow(partition, news, moment, out)

    def _lead(self, partition: int, news: PartitionState, moment: Moment, out: Outbox) -> None:
        role = self.roles.get(partition)
        log = self._log_of(partition)
        known = unassigned(self.broker) if role is None else role.state
        leading = become_leader(known, news, log.state, moment.now_ms, self.settings.terms.rules)
        if leading is None:
            return
        if news.leader_epoch > known.leader_epoch:
            log.begin_epoch(news.leader_epoch)
        if isinstance(role, LeaderRole):
            role.renew(leading.state, moment, out)
            return
        assert self.epoch is not None
        role = LeaderRole(partition, leading.state, log, self.epoch, self.settings)
        self.roles[partition] = role
        role.renew(leading.state, moment, out)

    def _follow(self, partition: int, news: PartitionState, moment: Moment, out: Outbox) -> None:
        role = self.roles.get(partition)
        known = unassigned(self.broker) if role is None else role.state
        following = become_follower(known, news)
        if following is None:
            return
        if isinstance(role, LeaderRole):
            role.resign(news, out)
        if not isinstance(role, FollowerRole):
            assert self.epoch is not None
            log = self._log_of(partition)
            role = FollowerRole(partition, following.state, log, self.epoch, self.settings)
            self.roles[partition] = role
        role.follow(following, moment, out)

    def _log_of(self, partition: int) -> ReplicaLog:
        role = self.roles.get(partition)
        return self.start.open_log(partition) if role is None else role.log

    # Requests for a partition.

    def _on_fetch(self, fetch: Fetch, sender: Address, moment: Moment, out: Outbox) -> None:
        role = self.roles.get(fetch.partition)
        if isinstance(role, LeaderRole):
            role.on_fetch(fetch, sender, moment, out)
            return
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        if role is not None and fetch.request.leader_epoch > role.state.leader_epoch:
            error = ErrorCode.UNKNOWN_LEADER_EPOCH
        elif role is not None and fetch.request.leader_epoch < role.state.leader_epoch:
            error = ErrorCode.FENCED_LEADER_EPOCH
        out.send(sender, Fetched(fetch.partition, fetch.number, FetchAnswer(error=error), b""))

    def _on_produce(self, write: Produce, sender: Address, moment: Moment, out: Outbox) -> None:
        role = self.roles.get(write.partition)
        if isinstance(role, LeaderRole):
            role.on_produce(write, sender, moment, out)
        elif write.acks != 0:
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
            out.send(sender, Produced(write.partition, write.number, write.acks, error, Offset(-1), appended=False))

    def _on_consume(self, ask: Consume, sender: Address, out: Outbox) -> None:
        role = self.roles.get(ask.partition)
        if role is None:
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
            out.send(sender, Consumed(ask.partition, ask.number, error, b"", Offset(-1), Offset(-1)))
            return
        settings = self.settings
        out.send(sender, answer_consumer(role.state, role.log, ask, settings.terms.rules, settings.fetch_bytes_max))

    @property
    def _lag_check_ms(self) -> DurationMs:
        return DurationMs(self.settings.terms.lag_ms_max // 2)
