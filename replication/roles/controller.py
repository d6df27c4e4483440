"""Model the active controller: it tracks live brokers, changes partitions, and writes both to the metadata log.

What it decides: when a broker is registered, fenced and unfenced, and which partitions an event changes. The rules
(`replication.rules.controller_events`, `alter_partition`) decide a partition's next state, the table in
`broker.registration` a broker's.

Goals, most important first:
1. Each change starts from the result of the change before, and is in the metadata log before any broker learns of it.
2. A silent broker is fenced, late rather than early. After a failover every broker has a whole session timeout.

Constraints: a refused request writes nothing. A failover keeps the metadata log, but loses the times of the last
heartbeats.

Example: broker 1 sends no heartbeat for 9 s: the controller fences it, and writes one record for each partition that
has 1 in its ISR, with a new leader where 1 led.

Left out: the quorum that replicates the metadata log; the ids of log directories; quotas.

Source: Kafka metadata ClusterControlManager, BrokerHeartbeatManager and ReplicationControlManager, commit 1eb7644
(2024-10) and 4.0; KIP-631, KIP-966.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from broker.error_codes import ErrorCode
from broker.errors import UsageError
from broker.ids import NO_LEADER, BrokerId
from broker.registration import (
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
from replication.rules.election import Election
from replication.rules.fencing import check_broker_epoch, is_clean_registration, is_session_valid, may_stop
from replication.rules.partition import BrokerStatus, PartitionState
from replication.rules.partition_change import change, target_of
from replication.rules.reassign import cancelled, started


@attrs.define
class Session:
    """Hold a broker's session: when the controller last heard of the broker, and the metadata that it has read."""

    heard_at_ms: TimeMs
    metadata_offset: int = 0
    shutdown_offset: int = 0


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
        self.log: list[MetadataRecord] = []
        self.image = MetadataImage()
        self.registrations: dict[BrokerId, Registration] = {}
        self._sessions: dict[BrokerId, Session] = {}
        self._pending_fetches: dict[BrokerId, PendingMetadataFetch] = {}

    def start(self, now_ms: TimeMs, out: Outbox) -> None:
        """Become active, at first or after a failover: every session starts at `now_ms`."""
        self._pending_fetches.clear()
        for session in self._sessions.values():
            session.heard_at_ms = now_ms
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
        elif isinstance(message, CreateTopic):
            self._create(message)
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
        session = self._sessions.get(broker)
        is_valid = session is not None and is_session_valid(session.heard_at_ms, now_ms, self.role_settings.session_ms)
        is_new_incarnation = existing is None or existing.incarnation_id != request.incarnation
        if is_new_incarnation:
            try:
                register(
                    existing,
                    broker_id=broker,
                    incarnation_id=request.incarnation,
                    record_offset=len(self.log),
                    session_valid=is_valid,
                )
            except DuplicateBrokerRegistrationError:
                out.send(sender, BrokerRegistrationResponse(None))
                return
            self._forget_former_incarnation(request)
        registration = register(
            existing,
            broker_id=broker,
            incarnation_id=request.incarnation,
            record_offset=len(self.log),
            session_valid=False,
        )
        self.registrations[broker] = registration
        self._sessions[broker] = Session(now_ms)
        if is_new_incarnation:
            self._write(BrokerRecord(broker, BrokerStatus(epoch=registration.epoch, fenced=True, rack=request.rack)))
        out.send(sender, BrokerRegistrationResponse(registration.epoch))

    def _forget_former_incarnation(self, request: BrokerRegistration) -> None:
        """Remove a restarted broker from every ISR, and from every ELR too if it may have lost records."""
        broker, settings = request.broker, self.role_settings.settings
        status = self.image.brokers.get(broker)
        if not is_clean_registration(request.proof, status):
            self._change_all(lambda state, active: restarted_uncleanly(state, broker, active, settings))
        self._change_all(lambda state, active: fenced(state, broker, active, settings))

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
            beat.heartbeat, registration_offset=registration.epoch, leads=leads, shutdown_seen_by_all=may_go
        )
        try:
            state = broker_step(registration.state, event)
        except UsageError:
            return  # An old heartbeat that overtook nothing: it says less than is known.
        session.heard_at_ms = now_ms
        session.metadata_offset = max(session.metadata_offset, beat.heartbeat.metadata_offset)
        self._enter(broker, state)
        self._lose_directories(broker, beat.offline)
        out.send(sender, BrokerHeartbeatResponse(ErrorCode.NONE, state))

    def _expire(self, now_ms: TimeMs) -> None:
        session_ms = self.role_settings.session_ms
        silent = sorted(
            broker
            for broker, session in self._sessions.items()
            if not is_session_valid(session.heard_at_ms, now_ms, session_ms)
            and self.registrations[broker].state in SESSION_STATES
        )
        if not silent:
            return
        # Kafka fences one broker, and lets that be seen, before it looks at the next (KAFKA-13173).
        one_by_one = self.role_settings.settings.rules.fence_one_at_a_time
        for group in [(broker,) for broker in silent] if one_by_one else [tuple(silent)]:
            self._fence_silent(group)

    def _fence_silent(self, brokers: tuple[BrokerId, ...]) -> None:
        active = {partition: self._active(partition) for partition in self.image.partitions}
        for broker in brokers:
            following = broker_step(self.registrations[broker].state, BrokerInput.SESSION_EXPIRED)
            self.registrations[broker] = attrs.evolve(self.registrations[broker], state=following)
            self._write_status(broker, following)
        for partition, state in sorted(self.image.partitions.items()):
            after = fenced_together(state, brokers, active[partition], self.role_settings.settings)
            if after.partition_epoch != state.partition_epoch:
                self._write(PartitionRecord(partition, after))

    def _enter(self, broker: BrokerId, state: BrokerState) -> None:
        """Write a broker's new state, and the partition changes that follow from it."""
        registration = self.registrations[broker]
        before = registration.state
        if state is before:
            return
        self.registrations[broker] = attrs.evolve(registration, state=state)
        settings = self.role_settings.settings
        self._write_status(broker, state)
        if state is BrokerState.UNFENCED:
            self._change_all(lambda partition, active: unfenced(partition, broker, active, settings))
        else:
            self._change_all(lambda partition, active: fenced(partition, broker, active, settings))
        self._sessions[broker].shutdown_offset = len(self.log)

    def _lose_directories(self, broker: BrokerId, offline: frozenset[int]) -> None:
        """Remove a broker from the ISRs of the partitions whose directories have failed since its last heartbeat."""
        status = self.image.brokers[broker]
        lost = offline - status.offline
        if not lost:
            return
        self._write(BrokerRecord(broker, attrs.evolve(status, offline=status.offline | lost)))
        for partition in sorted(lost.intersection(self.image.partitions)):
            state = self.image.partitions[partition]
            after = fenced(state, broker, self._active(partition), self.role_settings.settings)
            if after is not None:
                self._write(PartitionRecord(partition, after))

    def _write_status(self, broker: BrokerId, state: BrokerState) -> None:
        status = BrokerStatus(
            epoch=self.registrations[broker].epoch,
            fenced=state not in SESSION_STATES,
            shutting_down=state is BrokerState.CONTROLLED_SHUTDOWN,
            offline=self.image.brokers[broker].offline,
            rack=self.image.brokers[broker].rack,
        )
        if status != self.image.brokers.get(broker):
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
        state = self.image.partitions.get(ask.partition)
        assert state is not None, ask
        error = check_broker_epoch(self.image.brokers.get(ask.request.leader), ask.broker_epoch)
        if error is not ErrorCode.NONE:
            out.send(sender, AlterPartitionResponse(ask.partition, ask.request, Altered(error, state)))
            return
        altered = alter(state, ask.request, self.image.brokers, self.role_settings.settings)
        if altered.partition is not state:
            self._write(PartitionRecord(ask.partition, altered.partition))
        out.send(sender, AlterPartitionResponse(ask.partition, ask.request, altered))

    def _balance(self) -> None:
        settings = self.role_settings.settings
        for partition, state in sorted(self.image.partitions.items()):
            active = self._active(partition)
            after = swept(state, active, settings)
            if state.leader not in (NO_LEADER, state.replicas[0]):
                error, moved = election_requested(state, Election.PREFERRED, active, settings)
                after = moved if error is ErrorCode.NONE else None
            if after is not None:
                self._write(PartitionRecord(partition, after))

    def _create(self, order: CreateTopic) -> None:
        isr = tuple(broker for broker in order.replicas if broker in self._active(order.partition))
        if isr and order.partition not in self.image.partitions:
            self._write(
                PartitionRecord(
                    order.partition, PartitionState(replicas=order.replicas, isr=isr, leader=isr[0]), order.topic
                )
            )

    def _reassign(self, order: AlterPartitionReassignments) -> ErrorCode:
        state, settings = self.image.partitions.get(order.partition), self.role_settings.settings
        if state is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if order.replicas:
            phase = started(state, order.replicas)
        elif not state.is_reassigning:
            return ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        else:
            phase = cancelled(state)
            if phase.loses and not settings.unclean_election:
                return ErrorCode.INVALID_REPLICA_ASSIGNMENT
        target = attrs.evolve(target_of(state, state.isr, settings), phase=phase)
        after = change(state, target, self._active(order.partition), settings)
        if after is not None:
            self._write(PartitionRecord(order.partition, after))
        return ErrorCode.NONE

    def _elect(self, order: ElectLeaders) -> ErrorCode:
        state = self.image.partitions.get(order.partition)
        if state is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        error, after = election_requested(
            state, order.election, self._active(order.partition), self.role_settings.settings
        )
        if after is not state:
            self._write(PartitionRecord(order.partition, after))
        return error

    def _change_all(self, decide: Callable[[PartitionState, frozenset[BrokerId]], PartitionState | None]) -> None:
        for partition, state in sorted(self.image.partitions.items()):
            after = decide(state, self._active(partition))
            if after is not None:
                self._write(PartitionRecord(partition, after))

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


def _answer(sender: Address, response: AlterPartitionReassignmentsResponse | ElectLeadersResponse, out: Outbox) -> None:
    """Answer an operator's request, unless it came from outside the network, where no process waits for the answer."""
    if sender.node >= 0:
        out.send(sender, response)
