"""Model the active controller: it tracks live brokers, changes partitions, and writes both to the metadata log.

A refused request writes nothing. A failover keeps the metadata log, but loses the times of the last heartbeats.

Source: Kafka metadata ClusterControlManager, BrokerHeartbeatManager and ReplicationControlManager, 4.3.1 and 4.0;
KIP-631, KIP-966.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from broker.error_codes import ErrorCode
from broker.errors import UsageError
from broker.ids import BrokerId
from broker.registration import (
    NOTHING_READ,
    SESSION_STATES,
    BrokerInput,
    BrokerState,
    DuplicateBrokerRegistrationError,
    Registration,
    broker_step,
    heartbeat_input,
    register,
)
from broker.units import TimeMs
from replication.roles.messages import (
    Address,
    AlterConfigs,
    AlterPartition,
    AlterPartitionReassignments,
    AlterPartitionReassignmentsResponse,
    AlterPartitionResponse,
    BalanceDue,
    BrokerHeartbeat,
    BrokerHeartbeatResponse,
    BrokerRecord,
    BrokerRegistration,
    BrokerRegistrationResponse,
    CreateTopic,
    CreateTopics,
    DeleteTopic,
    ElectLeaders,
    ElectLeadersResponse,
    Message,
    MetadataFetch,
    MetadataFetchResponse,
    MetadataRecord,
    PartitionRecord,
    PartitionRemoved,
    SessionsDue,
)
from replication.roles.metadata import MetadataImage
from replication.roles.outbox import Outbox
from replication.roles.settings import RoleSettings
from replication.roles.states.partition_status import check_change
from replication.rules.alter_partition import Altered, alter
from replication.rules.controller_events import (
    active_brokers,
    election_requested,
    fenced,
    fenced_together,
    restarted_uncleanly,
    swept,
    unfenced,
)
from replication.rules.election import Election, ElectionPolicy
from replication.rules.fencing import check_broker_epoch, has_session, is_clean_registration, is_session_valid, may_stop
from replication.rules.partition import BrokerStatus, PartitionState
from replication.rules.partition_change import Target, change, target_of
from replication.rules.reassign import cancelled, started
from replication.rules.settings import PartitionSettings


@attrs.define
class Session:
    """Hold a broker's session: when its last heartbeat came, None for never, and the metadata that it has read.

    `registered_offset` is the offset of its last registration record. It may be above the broker epoch, which is the
    offset at which the records of the registration begin. `metadata_offset` is that of the last record that it has
    read, and `shutdown_offset` that of the last record of its controlled shutdown.
    """

    registered_offset: int
    heard_at_ms: TimeMs | None = None
    metadata_offset: int = NOTHING_READ
    shutdown_offset: int = NOTHING_READ


@attrs.frozen
class PendingMetadataFetch:
    """Hold a broker's MetadataFetch until the next metadata record is written."""

    ask: MetadataFetch
    sender: Address


class ControllerRole:
    """Model the active controller.

    `log` is the metadata log, `image` the state after it, `registrations` the brokers with their states.
    """

    def __init__(self, role_settings: RoleSettings) -> None:
        self.role_settings = role_settings
        self._policy = role_settings.policy
        self.log: list[MetadataRecord] = []
        self.image = MetadataImage()
        self.registrations: dict[BrokerId, Registration] = {}
        self._sessions: dict[BrokerId, Session] = {}
        self._pending_fetches: dict[BrokerId, PendingMetadataFetch] = {}

    def start(self, now_ms: TimeMs, out: Outbox) -> None:
        """Become active, at first or after a failover: every session starts at `now_ms`."""
        self._pending_fetches.clear()
        for broker, session in self._sessions.items():
            registration = self.registrations[broker]
            is_alive = registration.state in SESSION_STATES
            self._sessions[broker] = Session(session.registered_offset, now_ms if is_alive else None)
            if is_alive:
                # That a broker is shutting down is known of its registration, how far it has come is forgotten.
                self.registrations[broker] = attrs.evolve(registration, state=BrokerState.UNFENCED)
        out.wake(self.role_settings.session_check_ms, SessionsDue())
        out.wake(self.role_settings.balance_ms, BalanceDue())

    def handle(self, message: Message, sender: Address, now_ms: TimeMs, out: Outbox) -> None:
        """Handle one message; records go to the log, answers to `out`."""
        end_before = len(self.log)
        if isinstance(message, MetadataFetch):
            self._on_metadata_fetch(message, sender, out)
        elif isinstance(message, BrokerHeartbeat):
            self._on_heartbeat(message, sender, now_ms, out)
        elif isinstance(message, AlterPartition):
            self._on_alter_partition(message, sender, out)
        elif isinstance(message, BrokerRegistration):
            self._on_register(message, sender, now_ms, out)
        elif isinstance(message, SessionsDue):
            self._expire(now_ms)
            out.wake(self.role_settings.session_check_ms, SessionsDue())
        elif isinstance(message, BalanceDue):
            self._balance()
            out.wake(self.role_settings.balance_ms, BalanceDue())
        elif isinstance(message, AlterPartitionReassignments):
            _answer(sender, AlterPartitionReassignmentsResponse(message.partition, self._reassign(message)), out)
        elif isinstance(message, ElectLeaders):
            _answer(sender, ElectLeadersResponse(message.partition, self._elect(message)), out)
        elif isinstance(message, CreateTopic | CreateTopics):
            self._create(message.orders if isinstance(message, CreateTopics) else (message,))
        elif isinstance(message, AlterConfigs):
            self._write(message.config)
        elif isinstance(message, DeleteTopic):
            if message.partition in self.image.partitions:
                self._write(PartitionRemoved(message.partition))
        else:
            raise UsageError(f"a controller takes no {type(message).__name__}")
        if len(self.log) > end_before:
            self._answer_pending(out)

    # Brokers.

    def _on_register(self, request: BrokerRegistration, sender: Address, now_ms: TimeMs, out: Outbox) -> None:
        broker = request.broker
        existing = self.registrations.get(broker)
        try:
            registration = register(
                existing,
                broker_id=broker,
                incarnation_id=request.incarnation,
                record_offset=len(self.log),
                session_valid=self._has_valid_session(broker, now_ms),
            )
        except DuplicateBrokerRegistrationError:
            out.send(sender, BrokerRegistrationResponse(None))
            return
        self.registrations[broker] = registration
        if existing is None or existing.incarnation_id != request.incarnation:
            self._forget_former_incarnation(request)
            self._sessions[broker] = Session(len(self.log))
            self._write(BrokerRecord(broker, BrokerStatus(epoch=registration.epoch, fenced=True, rack=request.rack)))
        else:
            # The same process amends what it said: it is as it was, and has to read the new record.
            known, session = self.image.brokers[broker], self._sessions[broker]
            self._sessions[broker] = attrs.evolve(
                session, registered_offset=len(self.log), metadata_offset=NOTHING_READ
            )
            self._write(BrokerRecord(broker, attrs.evolve(known, rack=request.rack)))
        out.send(sender, BrokerRegistrationResponse(registration.epoch))

    def _forget_former_incarnation(self, request: BrokerRegistration) -> None:
        """Remove a restarted broker from every ISR, and from every ELR too if it may have lost records."""
        broker = request.broker
        status = self.image.brokers.get(broker)
        if not is_clean_registration(request.proof, status):
            self._change_all(restarted_uncleanly, broker)
        self._change_all(fenced, broker)

    def _on_heartbeat(self, beat: BrokerHeartbeat, sender: Address, now_ms: TimeMs, out: Outbox) -> None:
        broker = beat.broker
        error = check_broker_epoch(self.image.brokers.get(broker), beat.epoch)
        if error is not ErrorCode.NONE:
            out.send(sender, BrokerHeartbeatResponse(error, BrokerState.UNREGISTERED))
            return
        registration, session = self.registrations[broker], self._sessions[broker]
        leads = may_go = False
        if beat.heartbeat.want_shutdown:
            leads = any(state.leader == broker for state in self.image.partitions.values())
            may_go = may_stop(
                leaderships=int(leads),
                shutdown_offset=session.shutdown_offset,
                least_metadata_offset=self._least_metadata_offset(),
            )
        event = heartbeat_input(
            beat.heartbeat, registration_offset=session.registered_offset, leads=leads, shutdown_seen_by_all=may_go
        )
        try:
            state = broker_step(registration.state, event)
        except UsageError:
            return  # An old heartbeat that overtook nothing: it says less than is known.
        session.heard_at_ms = now_ms
        session.metadata_offset = beat.heartbeat.metadata_offset
        self._enter(broker, state)
        self._lose_directories(broker, beat.offline)
        out.send(sender, BrokerHeartbeatResponse(ErrorCode.NONE, state))

    def _session_heard_at_ms(self, broker: BrokerId) -> TimeMs | None:
        """Return the controller's time of the last heartbeat in a broker's session; None if it has no session."""
        session = self._sessions.get(broker)
        if session is None:
            return None
        fenced, rules = self.registrations[broker].state not in SESSION_STATES, self.role_settings.settings.rules
        return session.heard_at_ms if has_session(session.heard_at_ms, fenced=fenced, rules=rules) else None

    def _has_valid_session(self, broker: BrokerId, now_ms: TimeMs) -> bool:
        """Return whether another process may not take a broker's id yet."""
        heard_at_ms = self._session_heard_at_ms(broker)
        return heard_at_ms is not None and is_session_valid(heard_at_ms, now_ms, self.role_settings.session_ms)

    def _expire(self, now_ms: TimeMs) -> None:
        # A fenced broker that has sent heartbeats has a session too: when it ends, the broker is fenced once more.
        silent = sorted(
            broker
            for broker in self._sessions
            if self._session_heard_at_ms(broker) is not None and not self._has_valid_session(broker, now_ms)
        )
        # Kafka fences one broker, and lets that be seen, before it looks at the next (KAFKA-13173).
        one_by_one = self.role_settings.settings.rules.fence_one_at_a_time
        for group in [(broker,) for broker in silent] if one_by_one else [tuple(silent)]:
            self._fence_silent(group)

    def _fence_silent(self, brokers: tuple[BrokerId, ...]) -> None:
        active = {partition: self._active(partition) for partition in self.image.partitions}
        settings = self._all_settings()
        for broker in brokers:
            self._sessions[broker].heard_at_ms = None
            registration = self.registrations[broker]
            if registration.state in SESSION_STATES:
                following = broker_step(registration.state, BrokerInput.SESSION_EXPIRED)
                self.registrations[broker] = attrs.evolve(registration, state=following)
                self._write_status(broker, following)
        for partition, state in sorted(self.image.partitions.items()):
            after = fenced_together(state, brokers, active[partition], settings[partition], self._policy)
            if after.partition_epoch != state.partition_epoch:
                self._write(PartitionRecord(partition, after))

    def _enter(self, broker: BrokerId, state: BrokerState) -> None:
        """Write a broker's new state, and the partition changes that follow from it."""
        registration = self.registrations[broker]
        before = registration.state
        # A broker that may stop counts as fenced, and each time it asks to stop it is fenced anew.
        was_fenced = before not in SESSION_STATES
        if state is BrokerState.FENCED if was_fenced else state is before:
            return
        self.registrations[broker] = attrs.evolve(registration, state=state)
        self._write_status(broker, state)
        if state is BrokerState.UNFENCED:
            # Until its next heartbeat Kafka takes a broker that was just unfenced for one that has read nothing.
            self._sessions[broker].metadata_offset = NOTHING_READ
            self._change_all(_able_again, broker)
        else:
            self._change_all(fenced, broker)
        self._sessions[broker].shutdown_offset = len(self.log) - 1

    def _lose_directories(self, broker: BrokerId, offline: frozenset[int]) -> None:
        """Remove a broker from the ISRs of the partitions whose directories have failed since its last heartbeat."""
        status = self.image.brokers[broker]
        lost = offline - status.offline
        if not lost:
            return
        self._write(BrokerRecord(broker, attrs.evolve(status, offline=status.offline | lost)))
        settings = self._all_settings()
        for partition in sorted(lost.intersection(self.image.partitions)):
            state = self.image.partitions[partition]
            after = fenced(state, broker, self._active(partition), settings[partition], self._policy)
            if after is not None:
                self._write(PartitionRecord(partition, after))

    def _write_status(self, broker: BrokerId, state: BrokerState) -> None:
        known = self.image.brokers[broker]
        status = BrokerStatus(
            epoch=self.registrations[broker].epoch,
            fenced=state not in SESSION_STATES,
            # Fencing a broker that began to shut down leaves that in its registration. Kafka's never take it back.
            shutting_down=state is BrokerState.CONTROLLED_SHUTDOWN
            or (known.shutting_down and state is not BrokerState.UNFENCED),
            offline=known.offline,
            rack=known.rack,
        )
        if status != known:
            self._write(BrokerRecord(broker, status))

    def _least_metadata_offset(self) -> int:
        offsets = [
            self._sessions[broker].metadata_offset
            for broker, registration in self.registrations.items()
            if registration.state is BrokerState.UNFENCED
        ]
        return min(offsets, default=len(self.log))

    # Partitions.

    def _on_alter_partition(self, ask: AlterPartition, sender: Address, out: Outbox) -> None:
        state, leader = self.image.partitions.get(ask.partition), ask.request.leader
        error = check_broker_epoch(self.image.brokers.get(leader), ask.broker_epoch)
        if state is None:
            # The topic was deleted while the request was on its way; the leader hears of it by the metadata.
            error = ErrorCode.UNKNOWN_TOPIC_ID if error is ErrorCode.NONE else error
            state = PartitionState(replicas=(leader,), isr=(leader,), leader=leader)
        if error is not ErrorCode.NONE:
            out.send(sender, AlterPartitionResponse(ask.partition, ask.request, Altered(error, state)))
            return
        altered = alter(state, ask.request, self.image.brokers, self.settings_of(ask.partition), self._policy)
        if altered.partition is not state:
            self._write(PartitionRecord(ask.partition, altered.partition))
        out.send(sender, AlterPartitionResponse(ask.partition, ask.request, altered))

    def _balance(self) -> None:
        """Run the two tasks of every five minutes: elect preferred leaders, then leaders of leaderless partitions."""
        self._change_all(_preferred)
        self._change_all(swept)

    def _create(self, orders: Sequence[CreateTopic]) -> None:
        """Create all partitions, or none if one is there already or has no live broker."""
        isrs = [tuple(broker for broker in each.replicas if broker in self._active(each.partition)) for each in orders]
        if not all(isrs) or any(each.partition in self.image.partitions for each in orders):
            return
        for order, isr in zip(orders, isrs, strict=True):
            leader = order.leader if order.leader in isr else isr[0]
            state = PartitionState(replicas=order.replicas, isr=isr, leader=leader)
            self._write(PartitionRecord(order.partition, state, order.topic))

    def _reassign(self, order: AlterPartitionReassignments) -> ErrorCode:
        state = self.image.partitions.get(order.partition)
        if state is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        settings = self.settings_of(order.partition)
        if order.replicas:
            if len(set(order.replicas)) < len(order.replicas) or not set(order.replicas) <= self.image.brokers.keys():
                return ErrorCode.INVALID_REPLICA_ASSIGNMENT
            target = Target(phase=started(state, order.replicas), recovering=state.recovering)
        elif not state.is_reassigning:
            return ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        else:
            phase = cancelled(state)
            if phase.loses and not settings.unclean_election:
                return ErrorCode.INVALID_REPLICA_ASSIGNMENT
            # Unlike the start of a move, a cancellation may elect uncleanly where that is allowed.
            target = attrs.evolve(target_of(state, state.isr, settings), phase=phase)
        after = change(state, target, self._active(order.partition), settings, self._policy)
        if after is None:
            return ErrorCode.NONE
        if after.has_leader and after.leader not in state.replicas:
            # The ELR may hold a broker that is no replica any more. Kafka asks for its directory, and fails.
            return ErrorCode.UNKNOWN_SERVER_ERROR
        self._write(PartitionRecord(order.partition, after))
        return ErrorCode.NONE

    def _elect(self, order: ElectLeaders) -> ErrorCode:
        state = self.image.partitions.get(order.partition)
        if state is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        error, after = election_requested(
            state, order.election, self._active(order.partition), self.settings_of(order.partition), self._policy
        )
        if after is not state:
            self._write(PartitionRecord(order.partition, after))
        return error

    def _change_all(self, decide: Callable[..., PartitionState | None], *brokers: BrokerId) -> None:
        """Write what `decide` makes of each partition; `brokers` holds the broker that it is about, if any."""
        settings = self._all_settings()
        for partition, state in sorted(self.image.partitions.items()):
            after = decide(state, *brokers, self._active(partition), settings[partition], self._policy)
            if after is not None:
                self._write(PartitionRecord(partition, after))

    def _all_settings(self) -> dict[int, PartitionSettings]:
        """Return every partition's settings as they are now.

        Kafka makes all records of an event from the state before it: a move of a topic's first partition that ends in
        it changes the replica count of no other one.
        """
        return {partition: self.settings_of(partition) for partition in self.image.partitions}

    def settings_of(self, partition: int) -> PartitionSettings:
        """Return a partition's settings, with the replica count of the topic's first partition if it is another."""
        settings, topics = self.image.settings_of(partition, self.role_settings.settings), self.image.topics
        topic = topics[partition]
        first = min(each for each, name in topics.items() if name == topic)
        replica_count = len(self.image.partitions[first].replicas)
        if replica_count == len(self.image.partitions[partition].replicas):
            return settings
        return attrs.evolve(settings, topic_replica_count=replica_count)

    def _active(self, partition: int) -> frozenset[BrokerId]:
        """Return the brokers that may lead a partition: unfenced, and with the replica's directory online."""
        brokers = self.image.brokers
        return frozenset(broker for broker in active_brokers(brokers) if partition not in brokers[broker].offline)

    # The log.

    def _write(self, record: MetadataRecord) -> None:
        if isinstance(record, PartitionRecord):
            check_change(self.image.partitions.get(record.partition), record.state)
        self.log.append(record)
        self.image.apply((record,))

    def _on_metadata_fetch(self, ask: MetadataFetch, sender: Address, out: Outbox) -> None:
        """Answer with the records that the broker has not read, or hold the request until there is one."""
        pending = PendingMetadataFetch(ask, sender)
        if ask.offset < len(self.log):
            self._pending_fetches.pop(ask.broker, None)
            self._answer_fetch(pending, out)
        else:
            self._pending_fetches[ask.broker] = pending

    def _answer_pending(self, out: Outbox) -> None:
        """Answer every pending MetadataFetch after new records were written."""
        for pending in self._pending_fetches.values():
            self._answer_fetch(pending, out)
        self._pending_fetches.clear()

    def _answer_fetch(self, pending: PendingMetadataFetch, out: Outbox) -> None:
        ask = pending.ask
        assert ask.offset < len(self.log), (ask, len(self.log))
        out.send(pending.sender, MetadataFetchResponse(ask.number, ask.offset, tuple(self.log[ask.offset :])))


def _preferred(
    partition: PartitionState, active: frozenset[BrokerId], settings: PartitionSettings, policy: ElectionPolicy
) -> PartitionState | None:
    error, after = election_requested(partition, Election.PREFERRED, active, settings, policy)
    return after if error is ErrorCode.NONE else None


def _able_again(
    partition: PartitionState,
    broker: BrokerId,
    active: frozenset[BrokerId],
    settings: PartitionSettings,
    policy: ElectionPolicy,
) -> PartitionState | None:
    """Return the partition after `broker` was unfenced; in a failed directory its replica cannot lead (KIP-858)."""
    if broker not in active:
        return swept(partition, active, settings, policy)
    return unfenced(partition, broker, active, settings, policy)


def _answer(sender: Address, response: AlterPartitionReassignmentsResponse | ElectLeadersResponse, out: Outbox) -> None:
    """Answer an operator's request, unless it came from outside the network, where no process waits for the answer."""
    if sender.node >= 0:
        out.send(sender, response)
