"""Model one broker process: it registers, sends heartbeats, applies metadata, and leads or follows each partition.

`handle` takes one message and writes the resulting messages and timers to an outbox. A request for a partition of which
the broker has no replica is answered NOT_LEADER_OR_FOLLOWER, or, if the broker has not heard of the topic or has heard
of its deletion, UNKNOWN_TOPIC_OR_PARTITION; a message that has no response is dropped.

When a log directory fails, the broker drops its replicas, answers requests for them with KAFKA_STORAGE_ERROR, and names
them in a heartbeat that it sends at once (KIP-112, KIP-858).

Source: Kafka core BrokerServer, BrokerLifecycleManager, BrokerMetadataPublisher and ReplicaManager.applyDelta, 4.3.1.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.errors import UsageError
from broker.ids import NO_LEADER, BrokerEpoch, LeaderEpoch, Offset
from broker.machines import step
from broker.registration import BrokerState, Heartbeat
from broker.units import DurationMs, TimeMs
from log.errors import InconsistentTopicIdError, StorageError
from replication.roles.follower import FollowerRole
from replication.roles.hosted import BrokerStart, HostedAppend
from replication.roles.leader import LeaderRole
from replication.roles.messages import (
    CONTROLLER,
    Address,
    AlterPartitionResponse,
    AlterPartitionRetryDue,
    BrokerHeartbeat,
    BrokerHeartbeatResponse,
    BrokerRegistration,
    BrokerRegistrationResponse,
    CheckpointDue,
    ConsumerFetch,
    ConsumerFetchResponse,
    Fetch,
    FetchDue,
    FetchExpired,
    FetchResponse,
    HeartbeatDue,
    HostedMessage,
    LagCheckDue,
    ListOffsets,
    ListOffsetsResponse,
    Message,
    MetadataFetch,
    MetadataFetchDue,
    MetadataFetchResponse,
    MetadataRequest,
    MetadataResponse,
    NodeId,
    OffsetsForLeaderEpoch,
    OffsetsForLeaderEpochResponse,
    Produce,
    ProduceExpired,
    ProduceResponse,
    RegistrationDue,
    ReplicaMessage,
)
from replication.roles.metadata import MetadataImage
from replication.roles.outbox import Outbox
from replication.roles.replica_log import ReplicaLog, answer_consumer
from replication.roles.settings import RoleSettings
from replication.roles.states.lifecycle import LIFECYCLE_TRANSITIONS, LifecycleInput, LifecycleState
from replication.roles.states.replica_role import REPLICA_ROLE_TRANSITIONS, ReplicaRole, ReplicaRoleInput
from replication.roles.states.write import REFUSALS, WriteInput, WriteState, end_of_write
from replication.rules.epochs import UNDEFINED_END
from replication.rules.fetch import FetchAnswer, answer_fetch
from replication.rules.leadership import become_follower, become_leader, unassigned
from replication.rules.partition import UNKNOWN_OFFSET, PartitionState
from replication.rules.produce import ACKS_ALL
from replication.rules.settings import Moment

_HEARD: Final = {
    BrokerState.UNFENCED: LifecycleInput.HEARTBEAT_UNFENCED,
    BrokerState.CONTROLLED_SHUTDOWN: LifecycleInput.HEARTBEAT_UNFENCED,
    BrokerState.SHUTDOWN_NOW: LifecycleInput.HEARTBEAT_SHUT_DOWN,
}
_STOPPING: Final = (LifecycleState.PENDING_CONTROLLED_SHUTDOWN, LifecycleState.SHUTTING_DOWN)


class BrokerRole:
    """Model one incarnation of a broker.

    `roles` holds its leader or follower role for each partition, `image` the metadata that it has read.
    """

    def __init__(self, start: BrokerStart, role_settings: RoleSettings) -> None:
        self.start = start
        self.broker = start.broker
        self.role_settings = role_settings
        self.epoch: BrokerEpoch | None = None
        self.image = MetadataImage()
        self.roles: dict[int, LeaderRole | FollowerRole] = {}
        self.offline: frozenset[int] = frozenset()
        self.unusable: frozenset[int] = frozenset()
        """Partitions whose log on disk belongs to another topic id; the broker does not open these logs."""
        self.lifecycle = LifecycleState.NOT_RUNNING
        self._question = 0
        self._append_count = 0
        self.hosted_roles = tuple(make(self) for make in start.hosted_roles)
        self._hosted_ms: TimeMs
        """When the hosted roles took their last message, by this broker's clock; they append only as they take one."""
        self._hosted_epochs: dict[int, LeaderEpoch] = {}
        """The leader epochs in which hosted roles were told that this broker leads, by partition."""

    def begin(self, out: Outbox) -> None:
        """Start the process: send BrokerRegistration."""
        self._step_lifecycle(LifecycleInput.START)
        self._register(out)
        out.wake(self.role_settings.checkpoint_ms, CheckpointDue())
        out.wake(self._lag_check_ms, LagCheckDue())

    @property
    def may_stop(self) -> bool:
        """Return whether the controller has granted the controlled shutdown."""
        return self.lifecycle is LifecycleState.SHUTTING_DOWN

    def ask_to_stop(self) -> bool:
        """Begin a controlled shutdown if the broker is RUNNING; return whether it began."""
        if (self.lifecycle, LifecycleInput.STOP_WANTED) not in LIFECYCLE_TRANSITIONS:
            return False
        self._step_lifecycle(LifecycleInput.STOP_WANTED)
        return True

    def _step_lifecycle(self, event: LifecycleInput) -> None:
        self.lifecycle = step(LIFECYCLE_TRANSITIONS, self.lifecycle, event, what="process of the broker")

    def handle(self, message: Message, sender: Address, now_ms: TimeMs, out: Outbox) -> None:
        """Handle one message; the most frequent kinds are tried first."""
        try:
            if isinstance(message, FetchDue):
                if isinstance(role := self.roles.get(message.partition), FollowerRole):
                    role.on_fetch_due(message, out)
                return
            moment = Moment(now_ms, self.image.brokers)
            if isinstance(message, Fetch):
                self._on_fetch(message, sender, moment, out)
            elif isinstance(message, FetchResponse):
                if isinstance(role := self.roles.get(message.partition), FollowerRole):
                    role.on_fetch_response(message, moment, out)
            elif isinstance(message, FetchExpired):
                if isinstance(role := self.roles.get(message.partition), LeaderRole):
                    role.on_fetch_expired(message, moment, out)
            elif isinstance(message, ReplicaMessage):
                self._on_partition_message(message, sender, moment, out)
            else:
                self._on_own_message(message, sender, moment, out)
        except StorageError as error:
            self._lose_directory(error.path, now_ms, out)
            self._refuse(message, sender, out)

    def _on_partition_message(self, message: Message, sender: Address, moment: Moment, out: Outbox) -> None:
        """Handle a message about one partition; `handle` tries the most frequent kinds before."""
        if isinstance(message, ProduceExpired):
            if isinstance(role := self.roles.get(message.partition), LeaderRole):
                role.on_write_expired(message, out)
        elif isinstance(message, Produce):
            self._on_produce(message, sender, moment, out)
        elif isinstance(message, ConsumerFetch):
            self._on_consumer_fetch(message, sender, moment, out)
        elif isinstance(message, MetadataRequest):
            self._on_metadata_request(message, sender, out)
        else:
            self._on_rarer(message, sender, moment, out)

    def _on_rarer(self, message: Message, sender: Address, moment: Moment, out: Outbox) -> None:
        if isinstance(message, OffsetsForLeaderEpoch):
            if isinstance(role := self.roles.get(message.partition), LeaderRole):
                role.on_offsets_for_leader_epoch(message, sender, out)
            else:
                error = self.absence(message.partition)
                out.send(sender, OffsetsForLeaderEpochResponse(message.partition, message.number, error, UNDEFINED_END))
        elif isinstance(message, ListOffsets):
            if isinstance(role := self.roles.get(message.partition), LeaderRole):
                role.on_list_offsets(message, sender, out)
            else:
                error = self.absence(message.partition)
                out.send(
                    sender,
                    ListOffsetsResponse(message.partition, message.number, error, UNKNOWN_OFFSET, UNKNOWN_OFFSET),
                )
        elif isinstance(message, OffsetsForLeaderEpochResponse):
            if isinstance(role := self.roles.get(message.partition), FollowerRole):
                role.on_offsets_for_leader_epoch_response(message, moment, out)
        elif isinstance(message, ListOffsetsResponse):
            if isinstance(role := self.roles.get(message.partition), FollowerRole):
                role.on_list_offsets_response(message, moment, out)
        elif isinstance(message, AlterPartitionResponse):
            if isinstance(role := self.roles.get(message.partition), LeaderRole):
                role.on_alter_partition_response(message, moment, out)
        else:
            assert isinstance(message, AlterPartitionRetryDue), message
            if isinstance(role := self.roles.get(message.partition), LeaderRole):
                role.on_alter_partition_retry(message, out)

    def _on_own_message(self, message: Message, sender: Address, moment: Moment, out: Outbox) -> None:
        """Handle a message that is not about a single partition."""
        if isinstance(message, MetadataFetchResponse):
            self._on_metadata(message, moment, out)
        elif isinstance(message, MetadataFetchDue):
            if message.number == self._question:
                self._fetch_metadata(out)
        elif isinstance(message, HeartbeatDue):
            self._send_heartbeat(out)
            out.wake(self.role_settings.heartbeat_ms, HeartbeatDue())
        elif isinstance(message, BrokerHeartbeatResponse):
            if message.error is ErrorCode.NONE:
                self._step_lifecycle(_HEARD.get(message.state, LifecycleInput.HEARTBEAT_FENCED))
        elif isinstance(message, LagCheckDue):
            for _, role in sorted(self.roles.items()):
                if isinstance(role, LeaderRole):
                    role.on_lag_check(moment, out)
            out.wake(self._lag_check_ms, LagCheckDue())
        elif isinstance(message, CheckpointDue):
            ends = {partition: role.log.log.high_watermark for partition, role in sorted(self.roles.items())}
            self.start.checkpoint(ends)
            out.wake(self.role_settings.checkpoint_ms, CheckpointDue())
        elif isinstance(message, BrokerRegistrationResponse):
            self._on_registered(message, out)
        elif isinstance(message, RegistrationDue):
            if self.epoch is None:
                self._register(out)
        elif isinstance(message, HostedMessage | ProduceResponse):
            self._hosted_ms = moment.now_ms
            for hosted in self.hosted_roles:
                hosted.handle(message, sender, moment.now_ms, out)
        else:
            raise UsageError(f"a broker takes no {type(message).__name__}")

    def _on_metadata_request(self, message: MetadataRequest, sender: Address, out: Outbox) -> None:
        known = self.image.partitions.get(message.partition)
        response = MetadataResponse(message.partition, message.number, NO_LEADER)
        if known is not None:
            response = MetadataResponse(message.partition, message.number, known.leader, known.leader_epoch)
        out.send(sender, response)

    # Registration and metadata.

    def _register(self, out: Outbox) -> None:
        out.send(
            Address(CONTROLLER),
            BrokerRegistration(self.broker, self.start.incarnation, self.start.proof, self.start.rack),
        )
        out.wake(self.role_settings.answer_ms_max, RegistrationDue())

    def _on_registered(self, response: BrokerRegistrationResponse, out: Outbox) -> None:
        if response.epoch is None or self.epoch is not None:
            return
        self.epoch = response.epoch
        self._fetch_metadata(out)
        self._send_heartbeat(out)
        out.wake(self.role_settings.heartbeat_ms, HeartbeatDue())

    def _send_heartbeat(self, out: Outbox) -> None:
        assert self.epoch is not None
        is_stopping = self.lifecycle in _STOPPING
        heartbeat = Heartbeat(metadata_offset=self.image.offset - 1, want_shutdown=is_stopping)
        out.send(Address(CONTROLLER), BrokerHeartbeat(self.broker, self.epoch, heartbeat, self.offline))

    def _fetch_metadata(self, out: Outbox) -> None:
        self._question += 1
        out.send(Address(CONTROLLER), MetadataFetch(self.broker, self._question, self.image.offset))
        # The controller answers when it has new records; a lost question or answer is found out by asking again.
        out.wake(self.role_settings.answer_ms_max, MetadataFetchDue(self._question))

    def _on_metadata(self, response: MetadataFetchResponse, moment: Moment, out: Outbox) -> None:
        if response.number != self._question or response.offset != self.image.offset:
            return
        is_first = self.image.offset == 0
        changed = self.image.apply(response.records)
        moment = Moment(moment.now_ms, self.image.brokers)
        if is_first:
            self.start.drop_strays(self.image)
        for partition in changed:
            try:
                if partition in self.image.partitions:
                    self._publish(partition, self.image.partitions[partition], moment, out)
                else:
                    self._remove(partition, out)
            except InconsistentTopicIdError:
                self.unusable |= {partition}
            except StorageError as error:
                self.offline |= {partition}
                self._lose_directory(error.path, moment.now_ms, out)
            self._notify_hosted(partition, moment.now_ms, out)
        own = self.image.brokers.get(self.broker)
        if self.lifecycle is LifecycleState.STARTING and own is not None and own.epoch == self.epoch:
            self._step_lifecycle(LifecycleInput.CAUGHT_UP)
        if is_first:
            # Caught up with its own registration, it asks to be unfenced without waiting for the next heartbeat.
            self._send_heartbeat(out)
        self._fetch_metadata(out)

    def _publish(self, partition: int, new_state: PartitionState, moment: Moment, out: Outbox) -> None:
        assert self.epoch is not None
        if partition in self.offline or partition in self.unusable:
            return
        role = self.roles.get(partition)
        if self.broker not in new_state.replicas:
            if isinstance(role, LeaderRole):
                role.resign(new_state, out)
            self._leave(partition)
            self.start.drop_log(partition)
        elif new_state.leader == self.broker:
            if isinstance(role, LeaderRole):
                role.configure(self._settings_of(partition))
            self._lead(partition, new_state, moment, out)
        else:
            self._follow(partition, new_state, moment, out)

    def _remove(self, partition: int, out: Outbox) -> None:
        """Drop the replica of a deleted topic, and delete its log."""
        role = self._leave(partition)
        if role is None:
            return  # What it may have left on disk is a stray.
        if isinstance(role, LeaderRole):
            role.fail(WriteInput.TOPIC_DELETED, out)
        self.start.drop_log(partition)

    def _leave(self, partition: int) -> LeaderRole | FollowerRole | None:
        """Stop leading or following a partition, and return the former role, None if there was none."""
        replica_role = self._next_replica_role(partition, ReplicaRoleInput.STOP_REPLICA)
        assert replica_role is ReplicaRole.NONE, replica_role
        return self.roles.pop(partition, None)

    def _next_replica_role(self, partition: int, event: ReplicaRoleInput) -> ReplicaRole:
        """Return the state of this broker's replica after `event`."""
        return step(REPLICA_ROLE_TRANSITIONS, self._replica_role_of(partition), event, what="replica")

    def _replica_role_of(self, partition: int) -> ReplicaRole:
        role = self.roles.get(partition)
        return ReplicaRole.NONE if role is None else role.replica_role

    def _lead(self, partition: int, new_state: PartitionState, moment: Moment, out: Outbox) -> None:
        role = self.roles.get(partition)
        log = self._log_of(partition)
        known = unassigned(self.broker) if role is None else role.state
        leading = become_leader(known, new_state, log.state, moment.now_ms, self.role_settings.settings.rules)
        if leading is None:
            return
        log.take_epochs(leading.log)
        if not isinstance(role, LeaderRole):
            assert self.epoch is not None
            replica_role = self._next_replica_role(partition, ReplicaRoleInput.MAKE_LEADER)
            role = LeaderRole(partition, leading.state, log, self.epoch, self._settings_of(partition))
            self.roles[partition] = role
            assert role.replica_role is replica_role, replica_role
        role.renew(leading.state, moment, out)

    def _follow(self, partition: int, new_state: PartitionState, moment: Moment, out: Outbox) -> None:
        role = self.roles.get(partition)
        known = unassigned(self.broker) if role is None else role.state
        following = become_follower(known, new_state)
        if following is None:
            return
        if isinstance(role, LeaderRole):
            role.resign(new_state, out)
        if not isinstance(role, FollowerRole):
            assert self.epoch is not None
            log = self._log_of(partition)
            was = self._replica_role_of(partition)
            role = FollowerRole(partition, following.state, log, self.epoch, self.role_settings)
            role.replica_role = was
            self.roles[partition] = role
        role.follow(following, moment, out)

    def _settings_of(self, partition: int) -> RoleSettings:
        """Return the settings of a partition, with those of its topic."""
        settings = self.image.settings_of(partition, self.role_settings.settings)
        if settings is self.role_settings.settings:
            return self.role_settings
        return attrs.evolve(self.role_settings, settings=settings)

    def _log_of(self, partition: int) -> ReplicaLog:
        role = self.roles.get(partition)
        return self.start.open_log(partition) if role is None else role.log

    # Directories.

    def _lose_directory(self, path: str, now_ms: TimeMs, out: Outbox) -> None:
        """Drop every replica in the log directory of `path`, and report them in a heartbeat at once."""
        lost = self.start.partitions_beside(path)
        self.offline |= lost
        for partition in sorted(lost):
            role = self._leave(partition)
            if isinstance(role, LeaderRole):
                role.fail(WriteInput.DIRECTORY_LOST, out)
            self._notify_hosted(partition, now_ms, out)
        if self.epoch is not None:
            self._send_heartbeat(out)

    def _refuse(self, message: Message, sender: Address, out: Outbox) -> None:
        """Answer a request during whose handling the log directory failed; other messages get no answer."""
        error = ErrorCode.KAFKA_STORAGE_ERROR
        if isinstance(message, Produce) and message.acks != 0:
            error = end_of_write(WriteState.RECEIVED, WriteInput.DIRECTORY_LOST)
            response = ProduceResponse(
                message.partition, message.number, message.acks, error, Offset(-1), appended=True
            )
            out.send(sender, response)
        elif isinstance(message, ConsumerFetch):
            out.send(
                sender, ConsumerFetchResponse(message.partition, message.number, error, b"", Offset(-1), Offset(-1))
            )
        elif isinstance(message, Fetch):
            out.send(sender, FetchResponse(message.partition, message.number, FetchAnswer(error=error), b""))

    def absence(self, partition: int) -> ErrorCode:
        """Return the error for a partition of which this broker has no replica online (getPartitionOrError)."""
        if partition in self.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        is_known = partition in self.roles or partition in self.image.partitions
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if is_known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    # HostedRoles.

    def append(self, partition: int, records: bytes, out: Outbox, acks: int = ACKS_ALL) -> HostedAppend:
        """Append a hosted role's batch to a partition that this broker leads; see `replication.roles.hosted`."""
        role = self.roles.get(partition)
        if not isinstance(role, LeaderRole):
            return HostedAppend(ErrorCode.NOT_LEADER_OR_FOLLOWER, 0)
        self._append_count += 1
        write = Produce(partition, self._append_count, acks, records)
        error = role.append(write, Address(NodeId(self.broker)), Moment(self._hosted_ms, self.image.brokers), out)
        return HostedAppend(error, write.number)

    def led_log(self, partition: int) -> ReplicaLog | None:
        """Return the log of a partition that this broker leads; None for any other partition."""
        role = self.roles.get(partition)
        return role.log if isinstance(role, LeaderRole) else None

    def _notify_hosted(self, partition: int, now_ms: TimeMs, out: Outbox) -> None:
        """Tell hosted roles, such as group coordinators, of a leader epoch that this broker has begun or left."""
        role = self.roles.get(partition)
        epoch = role.state.leader_epoch if isinstance(role, LeaderRole) else None
        if epoch == self._hosted_epochs.get(partition):
            return
        if epoch is None:
            del self._hosted_epochs[partition]
            for hosted in self.hosted_roles:
                hosted.on_lost(partition, now_ms, out)
        else:
            self._hosted_epochs[partition] = epoch
            for hosted in self.hosted_roles:
                hosted.on_gained(partition, epoch, now_ms, out)

    # Requests for a partition.

    def _on_fetch(self, fetch: Fetch, sender: Address, moment: Moment, out: Outbox) -> None:
        role = self.roles.get(fetch.partition)
        if isinstance(role, LeaderRole):
            role.on_fetch(fetch, sender, moment, out)
            return
        if role is None:
            answer = FetchAnswer(error=self.absence(fetch.partition))
        else:
            answer = answer_fetch(role.state, role.log.state, fetch.request, self.role_settings.settings.rules)
        out.send(sender, FetchResponse(fetch.partition, fetch.number, answer, b""))

    def _on_produce(self, write: Produce, sender: Address, moment: Moment, out: Outbox) -> None:
        role = self.roles.get(write.partition)
        if isinstance(role, LeaderRole):
            role.on_produce(write, sender, moment, out)
        elif write.acks != 0:
            error = end_of_write(WriteState.RECEIVED, REFUSALS[self.absence(write.partition)])
            out.send(
                sender, ProduceResponse(write.partition, write.number, write.acks, error, Offset(-1), appended=False)
            )

    def _on_consumer_fetch(self, ask: ConsumerFetch, sender: Address, moment: Moment, out: Outbox) -> None:
        role = self.roles.get(ask.partition)
        if role is None:
            error = self.absence(ask.partition)
            out.send(sender, ConsumerFetchResponse(ask.partition, ask.number, error, b"", Offset(-1), Offset(-1)))
            return
        out.send(sender, answer_consumer(role.state, role.log, ask, moment, self.role_settings))

    @property
    def _lag_check_ms(self) -> DurationMs:
        return DurationMs(self.role_settings.settings.lag_ms_max // 2)
