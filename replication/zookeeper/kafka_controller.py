"""Decide the next step of each partition and replica as the ZooKeeper-era controller (KafkaController) does.

What it decides: for each partition, the next state to write, by the state machines and the election strategies, and
which brokers get requests. Every replica and partition steps by the tables of `replication.roles.states.zookeeper`.

Goals, most important first:
1. The controller sends brokers only states that are already written to ZooKeeper.
2. One write of a partition at a time, each on the result of the one before.
3. A lost message costs time only: the write or request is repeated at the next reading.

Constraints: a controller knows only the states that it has read and written; the next controller starts with an empty
context.

How: the first reading fills the state machines as Kafka's controller does after a fail-over. Then, at each reading and
after each write, the controller completes a reassignment whose targets are in sync, brings replicas on live brokers
online, takes a partition without a live leader offline and elects by the strategy of the occasion, and takes replicas
on dead brokers offline and out of the ISR one by one. When there is nothing to write, it sends LeaderAndIsr to the
replicas. After a refused write it reads again.

Example: broker 0 leads (0, 1, 2) and dies: OFFLINE_PARTITION; 1 is elected with ISR (1, 2), ONLINE_PARTITION; replica 0
is OFFLINE_REPLICA; 1 and 2 get LeaderAndIsr. 0 comes back: ONLINE_REPLICA, and gets LeaderAndIsr.

Left out: the queue of events, as a reading holds all of them; batching of requests; the regular election of preferred
leaders; the separate writes at the end of a reassignment: the new leader, the smaller ISR and the new assignment are
one write here, with one leader epoch.

Source: Kafka core KafkaController (onBrokerStartup, onReplicasBecomeOffline, onNewPartitionCreation,
onPartitionReassignment, doControlledShutdown), ReplicaStateMachine and PartitionStateMachine, 2.8 and 4.3.1;
KIP-380, KIP-455, KAFKA-6082.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.ids import BrokerId
from replication.roles.messages import CONTROLLER, Address, AlterPartitionReassignments, ElectLeaders, NodeId
from replication.roles.outbox import Outbox
from replication.roles.states.zookeeper import ZkPartitionInput, ZkPartitionState, ZkReplicaInput, ZkReplicaState
from replication.rules.election import Election
from replication.rules.partition import PartitionState
from replication.rules.reassign import Phase, cancelled, completed
from replication.rules.settings import PartitionSettings
from replication.zookeeper.deletion import TopicDeletion
from replication.zookeeper.live_brokers import LiveBrokers
from replication.zookeeper.messages import (
    ControlledShutdown,
    ControlledShutdownResponse,
    DeleteTopicZnodes,
    GetClusterStateResponse,
    LeaderAndIsr,
    LeaderAndIsrResponse,
    StopReplicaResponse,
    UpdateMetadata,
    UpdatePartitionState,
    UpdatePartitionStateResponse,
)
from replication.zookeeper.state_machines import StateMachines
from replication.zookeeper.strategies import (
    Strategy,
    elected,
    elected_uncleanly,
    first_state,
    moving_to,
    reassigned,
    with_all_targets,
    without,
)

_R, _P = ZkReplicaState, ZkPartitionState
_SERVING: Final = (_R.NEW_REPLICA, _R.ONLINE_REPLICA)
_AWAY: Final = (_R.OFFLINE_REPLICA, _R.REPLICA_DELETION_INELIGIBLE)
_TO_TAKE_OFFLINE: Final = (*_SERVING, _R.REPLICA_DELETION_INELIGIBLE)


@attrs.frozen
class ControllerStart:
    """Hold the controller's broker, its controller epoch and the partitions' settings.

    `tell` takes the lines of its state change log.
    """

    broker: BrokerId
    epoch: int
    settings: PartitionSettings
    tell: Callable[[str], None]


class KafkaController:
    """Model one controller's memory (ControllerContext); `machines` holds the states of replicas and partitions."""

    def __init__(self, controller_start: ControllerStart) -> None:
        self.controller_start = attrs.evolve(controller_start, settings=with_all_targets(controller_start.settings))
        self.epoch = controller_start.epoch
        self.machines = StateMachines(controller_start.broker, controller_start.epoch, controller_start.tell)
        self._live_brokers = LiveBrokers()
        self._deletion = TopicDeletion(controller_start.epoch, self.machines, self._live_brokers)
        self._read: GetClusterStateResponse | None = None
        self._states: dict[int, PartitionState] = {}
        self._topics: dict[int, str] = {}
        self._ungranted: dict[BrokerId, ControlledShutdown] = {}

    # What arrives.

    def on_get_cluster_state_response(self, read: GetClusterStateResponse, out: Outbox) -> None:
        """Take in all znodes, step every partition, and send UpdateMetadata to all."""
        if self._read is not None and read.transaction < self._read.transaction:
            return  # A later one has overtaken it.
        is_first = self._read is None
        self._read = read
        self._live_brokers.update(read.brokers)
        present = {**{partition: order.topic for partition, order in read.unmade.items()}, **read.topics}
        for partition in sorted(set(self._topics) - set(present)):
            self._deletion.forget(self._topics.pop(partition), partition)
            self._states.pop(partition, None)
        for partition, topic in sorted(present.items()):
            self._topics[partition] = topic
            if partition in read.partitions:
                self._take_in(partition, read.partitions[partition], out)
            if is_first:
                self._enter(partition)
            self._look_at(partition, out)
        for broker in self._live_brokers.brokers():
            out.send(Address(NodeId(broker)), UpdateMetadata(self.epoch, read))
        self._grant_stops(out)

    def on_update_partition_state_response(self, response: UpdatePartitionStateResponse, out: Outbox) -> None:
        """Go on with a partition after its state was written."""
        if response.is_written and response.partition in self._topics:
            self._take_in(response.partition, response.state, out)
            self._look_at(response.partition, out)
            self._grant_stops(out)

    def on_leader_and_isr_response(self, response: LeaderAndIsrResponse, broker: BrokerId, out: Outbox) -> None:
        """Mark a replica offline whose directory has failed; other errors need only time."""
        if response.error is ErrorCode.KAFKA_STORAGE_ERROR and response.partition in self._topics:
            self._live_brokers.record_failed_directory(response.partition, broker, response.broker_epoch)
            self._look_at(response.partition, out)

    def on_stop_replica_response(self, response: StopReplicaResponse, broker: BrokerId, out: Outbox) -> None:
        """Note whether a replica of a deleted topic is deleted; moved replicas are ignored."""
        if response.deletes and self._is_deleted(response.partition):
            if response.error is ErrorCode.NONE:
                self._deletion.confirm(self._topics[response.partition], response.partition, broker)
            else:
                self._live_brokers.record_failed_directory(response.partition, broker, response.broker_epoch)
            self._look_at(response.partition, out)

    def on_controlled_shutdown(self, ask: ControlledShutdown, out: Outbox) -> None:
        """Move leaderships off a broker and shrink ISRs, then answer its ControlledShutdown."""
        if self._live_brokers.epoch_of(ask.broker) == ask.epoch:
            self._live_brokers.stopping[ask.broker] = ask.epoch
            self._ungranted[ask.broker] = ask
            for partition in sorted(self._topics):
                self._look_at(partition, out)
            self._grant_stops(out)

    def on_order(self, order: ElectLeaders | AlterPartitionReassignments, out: Outbox) -> None:
        """Carry out an operator's ElectLeaders or AlterPartitionReassignments request."""
        state = self._states.get(order.partition)
        if state is None or self._is_deleted(order.partition):
            return
        after = self._elected(order, state) if isinstance(order, ElectLeaders) else self._moved(order, state)
        if after is not None:
            self._write(order.partition, after, out)

    def _elected(self, order: ElectLeaders, state: PartitionState) -> PartitionState | None:
        live = self._live_brokers.electable(order.partition, state.replicas)
        if order.election is Election.PREFERRED:
            is_needed = state.leader != state.replicas[0]
            return elected(state, Strategy.PREFERRED, live, self.controller_start.settings) if is_needed else None
        return None if state.leader in live else elected_uncleanly(state, live, self.controller_start.settings)

    def _moved(self, order: AlterPartitionReassignments, state: PartitionState) -> PartitionState | None:
        live = self._live_brokers.electable(order.partition, (*state.replicas, *order.replicas))
        if order.replicas:
            return reassigned(state, moving_to(state, order.replicas), live, self.controller_start.settings)
        if not state.is_reassigning or cancelled(state).loses:
            return None
        return reassigned(state, cancelled(state), live, self.controller_start.settings)

    # The book.

    def _enter(self, partition: int) -> None:
        """Set the states of a partition and its replicas as a new controller does."""
        state = self._states.get(partition)
        for broker in self._replicas_of(partition):
            if self._live_brokers.is_offline(partition, broker):
                self.machines.enter_replica(partition, broker, _R.REPLICA_DELETION_INELIGIBLE)
            else:
                self.machines.enter_replica(partition, broker, _R.ONLINE_REPLICA)
                self._live_brokers.record_epoch(partition, broker)
        if state is None:
            self.machines.enter_partition(partition, _P.NEW_PARTITION)
        else:
            leads = state.has_leader and not self._live_brokers.is_offline(partition, state.leader)
            self.machines.enter_partition(partition, _P.ONLINE_PARTITION if leads else _P.OFFLINE_PARTITION)

    def _take_in(self, partition: int, state: PartitionState, out: Outbox) -> None:
        """Keep a partition state unless a newer one is known, and forget the replicas that it no longer has."""
        known = self._states.get(partition)
        if known is not None and known.partition_epoch >= state.partition_epoch:
            return
        self._states[partition] = state
        for broker in self.machines.replicas(partition):
            if broker not in state.replicas:
                self._drop(partition, broker, state, out)
        is_online = self.machines.partition(partition) is _P.ONLINE_PARTITION
        if known is not None and is_online and state.leader != known.leader and state.has_leader:
            self._step_partition(partition, ZkPartitionInput.ELECT)

    def _drop(self, partition: int, broker: BrokerId, state: PartitionState, out: Outbox) -> None:
        """Forget a replica that a reassignment has removed, whether or not its broker ever answers."""
        steps = ZkReplicaInput
        for event in (steps.TAKE_OFFLINE, steps.DELETE, steps.CONFIRM_DELETION, steps.FORGET):
            self._step_replica(partition, broker, event)
        self._live_brokers.forget_epoch(partition, broker)
        self._deletion.stop(partition, broker, state.leader_epoch, out, deletes=True)

    # What comes next.

    def _look_at(self, partition: int, out: Outbox) -> None:
        """Do the next step of a partition: a step of its deletion, a write, or LeaderAndIsr to its replicas."""
        state = self._states.get(partition)
        if self._is_deleted(partition) and not (state is not None and state.is_reassigning):
            topic, replicas = self._topics[partition], self._replicas_of(partition)
            if self._deletion.advance(topic, partition, replicas, out):
                out.send(Address(CONTROLLER), DeleteTopicZnodes(self.controller_start.broker, self.epoch, partition))
            return
        self._assign(partition)
        live = self._live_brokers.electable(partition, self._replicas_of(partition))
        if state is None:
            self._bring_online(partition, ())
            after = first_state(self._replicas_of(partition), live)
        else:
            after = self._next_of(partition, state, live, out)
        if after is not None:
            self._write(partition, after, out)
        elif state is not None:
            self._tell_replicas(partition, state, out)

    def _assign(self, partition: int) -> None:
        """Step a new partition, or the new replicas of a reassignment, to their first states."""
        if self.machines.partition(partition) is _P.NON_EXISTENT_PARTITION:
            self._step_partition(partition, ZkPartitionInput.ASSIGN)
        for broker in self._replicas_of(partition):
            if self.machines.replica(partition, broker) is _R.NON_EXISTENT_REPLICA:
                self._step_replica(partition, broker, ZkReplicaInput.ASSIGN)

    def _next_of(
        self, partition: int, state: PartitionState, live: frozenset[BrokerId], out: Outbox
    ) -> PartitionState | None:
        """Return the next state of a partition to write; None if there is nothing to write."""
        settings = self.controller_start.settings
        phase = Phase(replicas=state.replicas, isr=state.isr, adding=state.adding, removing=state.removing)
        if completed(phase, settings.rules) is not None:
            after = reassigned(state, phase, live, settings)
            if after is not None:
                return after
        self._bring_online(partition, state.adding)
        return self._next_leader(partition, state, live) or self._next_isr(partition, state, out)

    def _bring_online(self, partition: int, adding: tuple[BrokerId, ...]) -> None:
        """Bring replicas on live brokers online; an added replica stays new until the reassignment is complete."""
        for broker in self._replicas_of(partition):
            if broker in self._live_brokers.stopping or self._live_brokers.is_offline(partition, broker):
                continue
            state = self.machines.replica(partition, broker)
            if state in _AWAY or (state is _R.NEW_REPLICA and broker not in adding and partition in self._states):
                self._step_replica(partition, broker, ZkReplicaInput.BRING_ONLINE)
            self._live_brokers.record_epoch(partition, broker)

    def _next_leader(self, partition: int, state: PartitionState, live: frozenset[BrokerId]) -> PartitionState | None:
        """Step a partition online or offline, and return it after an election; None if none is due or succeeds."""
        leads = state.has_leader and not self._live_brokers.is_offline(partition, state.leader)
        is_online = self.machines.partition(partition) is _P.ONLINE_PARTITION
        if leads != is_online:
            self._step_partition(partition, ZkPartitionInput.ELECT if leads else ZkPartitionInput.TAKE_OFFLINE)
        if not leads:
            return elected(state, Strategy.OFFLINE, live, self.controller_start.settings)
        if state.leader in self._live_brokers.stopping and len(state.replicas) > 1:
            return elected(state, Strategy.CONTROLLED_SHUTDOWN, live, self.controller_start.settings)
        return None

    def _next_isr(self, partition: int, state: PartitionState, out: Outbox) -> PartitionState | None:
        """Take replicas offline, and return the partition without one that is still in the ISR."""
        for broker in state.replicas:
            is_gone = self._live_brokers.is_offline(partition, broker)
            stops = broker in self._live_brokers.stopping and broker != state.leader and len(state.replicas) > 1
            if self.machines.replica(partition, broker) not in _TO_TAKE_OFFLINE or not (is_gone or stops):
                continue
            after = without(state, broker, self.controller_start.settings)
            if after is not None:
                return after
            self._step_replica(partition, broker, ZkReplicaInput.TAKE_OFFLINE)
            self._live_brokers.forget_epoch(partition, broker)
            if not is_gone:
                self._deletion.stop(partition, broker, state.leader_epoch, out, deletes=False)
            elif not self._live_brokers.is_offline(partition, broker):
                # The response was of an earlier incarnation.
                self._bring_online(partition, state.adding)
        return None

    # What is sent.

    def _write(self, partition: int, state: PartitionState, out: Outbox) -> None:
        out.send(Address(CONTROLLER), UpdatePartitionState(self.controller_start.broker, self.epoch, partition, state))

    def _tell_replicas(self, partition: int, state: PartitionState, out: Outbox) -> None:
        for broker in state.replicas:
            broker_epoch = self._live_brokers.epoch_of(broker)
            if broker_epoch is not None and self.machines.replica(partition, broker) in _SERVING:
                order = LeaderAndIsr(self.epoch, broker_epoch, partition, self._topics[partition], state)
                out.send(Address(NodeId(broker)), order)

    def _grant_stops(self, out: Outbox) -> None:
        """Answer ControlledShutdown once the broker's replicas are offline in all partitions with other replicas."""
        for broker, ask in sorted(self._ungranted.items()):
            if self._live_brokers.stopping.get(broker) != ask.epoch:
                del self._ungranted[broker]
            elif not any(self._holds_up(partition, broker) for partition in self._topics):
                del self._ungranted[broker]
                out.send(Address(NodeId(broker)), ControlledShutdownResponse(ask.epoch))

    def _holds_up(self, partition: int, broker: BrokerId) -> bool:
        is_alone = len(self._replicas_of(partition)) == 1
        return not is_alone and self.machines.replica(partition, broker) in _SERVING

    # Short words.

    def _is_deleted(self, partition: int) -> bool:
        return self._read is not None and partition in self._read.deleted

    def _replicas_of(self, partition: int) -> tuple[BrokerId, ...]:
        state = self._states.get(partition)
        if state is not None:
            return state.replicas
        assert self._read is not None, partition
        return self._read.unmade[partition].replicas

    def _step_replica(self, partition: int, broker: BrokerId, event: ZkReplicaInput) -> None:
        self.machines.step_replica(self._topics[partition], partition, broker, event)

    def _step_partition(self, partition: int, event: ZkPartitionInput) -> None:
        self.machines.step_partition(self._topics[partition], partition, event)
