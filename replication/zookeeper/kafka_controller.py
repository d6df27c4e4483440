"""Decide the next step of each partition and replica as the ZooKeeper-era controller (KafkaController) does.

What it decides: for each partition, the next state to write, by the election strategies, and which brokers get
requests.

Goals, most important first:
1. The controller sends brokers only states that are already written to ZooKeeper.
2. One write of a partition at a time, each on the result of the one before.
3. A lost message costs time only: the write or request is repeated at the next reading.

Constraints: a controller knows only the states that it has read and written; the next controller starts with an empty
context.

How: at each reading and after each write, the controller completes a reassignment whose targets are in sync, elects by
the strategy of the occasion where no live broker leads, and takes replicas on dead and stopping brokers out of the ISR
one by one. When there is nothing to write, it sends LeaderAndIsr to the replicas. After a refused write it reads again.

Example: broker 0 leads (0, 1, 2) and dies: 1 is elected with ISR (1, 2); 1 and 2 get LeaderAndIsr. When 0 has another
session, it gets LeaderAndIsr, too.

Left out: the deletion of topics; the queue of events, as a reading holds all of them; batching of requests; the regular
election of preferred leaders; the state machines of replicas and partitions, which only log what they refuse; the
separate writes at the end of a reassignment: the new leader, the smaller ISR and the new assignment are one write here,
with one leader epoch.

Source: Kafka core KafkaController (onBrokerStartup, onReplicasBecomeOffline, onNewPartitionCreation,
onPartitionReassignment, doControlledShutdown) and ControllerContext, 2.8; KIP-380, KIP-455,
KAFKA-6082.
"""

from __future__ import annotations

from collections.abc import Iterable

from broker.error_codes import ErrorCode
from broker.ids import BrokerEpoch, BrokerId, LeaderEpoch
from replication.roles.messages import CONTROLLER, Address, AlterPartitionReassignments, ElectLeaders, Message, NodeId
from replication.roles.outbox import Outbox
from replication.rules.election import Election
from replication.rules.partition import PartitionState
from replication.rules.reassign import Phase, cancelled, completed
from replication.rules.settings import PartitionSettings
from replication.zookeeper.messages import (
    ControlledShutdown,
    ControlledShutdownResponse,
    GetClusterStateResponse,
    LeaderAndIsr,
    LeaderAndIsrResponse,
    StopReplica,
    UpdateMetadata,
    UpdatePartitionState,
    UpdatePartitionStateResponse,
)
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


class KafkaController:
    """Model one controller's memory (ControllerContext).

    A broker epoch identifies a broker's session: a replica that was brought online in another one is offline.
    """

    def __init__(self, broker: BrokerId, epoch: int, settings: PartitionSettings) -> None:
        self.broker = broker
        self.epoch = epoch
        self._settings = with_all_targets(settings)
        self._read: GetClusterStateResponse | None = None
        self._states: dict[int, PartitionState] = {}
        self._topics: dict[int, str] = {}
        self._live: dict[BrokerId, BrokerEpoch] = {}
        """The brokers with a session as ZooKeeper listed them last, ascending."""
        self._stopping: dict[BrokerId, BrokerEpoch] = {}
        """The brokers in controlled shutdown."""
        self._ungranted: dict[BrokerId, BrokerEpoch] = {}
        """The brokers whose ControlledShutdown is not answered yet."""
        self._epochs: dict[tuple[int, BrokerId], BrokerEpoch] = {}
        """The broker epochs in which replicas were brought online."""
        self._failed: dict[tuple[int, BrokerId], BrokerEpoch] = {}
        """The broker epochs in which replicas' directories failed."""
        self._offline: set[tuple[int, BrokerId]] = set()
        """The replicas that are out of the ISR because their broker is dead or stopping."""

    # What arrives.

    def handle(self, message: Message, sender: BrokerId, out: Outbox) -> None:
        """Handle one message for the controller; other messages change nothing."""
        if isinstance(message, GetClusterStateResponse):
            self._on_read(message, out)
        elif isinstance(message, UpdatePartitionStateResponse):
            if message.is_written and message.partition in self._topics:
                self._take_in(message.partition, message.state, out)
                self._look_at(message.partition, out)
                self._grant_stops(out)
        elif isinstance(message, LeaderAndIsrResponse):
            # Other errors need only time.
            if message.error is ErrorCode.KAFKA_STORAGE_ERROR and message.partition in self._topics:
                self._failed[message.partition, sender] = message.broker_epoch
                self._look_at(message.partition, out)
        elif isinstance(message, ControlledShutdown):
            if self._live.get(message.broker) == message.epoch:
                self._stopping[message.broker] = self._ungranted[message.broker] = message.epoch
                for partition in sorted(self._topics):
                    self._look_at(partition, out)
                self._grant_stops(out)
        elif isinstance(message, ElectLeaders | AlterPartitionReassignments):
            state = self._states.get(message.partition)
            after = None
            if state is not None and isinstance(message, ElectLeaders):
                after = self._elected(message, state)
            elif state is not None and isinstance(message, AlterPartitionReassignments):
                after = self._moved(message, state)
            if after is not None:
                self._write(message.partition, after, out)

    def _on_read(self, read: GetClusterStateResponse, out: Outbox) -> None:
        """Take in all znodes, step every partition, and send UpdateMetadata to all."""
        if self._read is not None and read.transaction < self._read.transaction:
            return  # A later one has overtaken it.
        self._read = read
        self._live = {broker: status.epoch for broker, status in sorted(read.brokers.items()) if status.is_active}
        self._stopping = {broker: epoch for broker, epoch in self._stopping.items() if self._live.get(broker) == epoch}
        present = {**{partition: order.topic for partition, order in read.unmade.items()}, **read.topics}
        for partition, topic in sorted(present.items()):
            self._topics[partition] = topic
            if partition in read.partitions:
                self._take_in(partition, read.partitions[partition], out)
            self._look_at(partition, out)
        for broker in self._live:
            out.send(Address(NodeId(broker)), UpdateMetadata(self.epoch, read))
        self._grant_stops(out)

    def _elected(self, order: ElectLeaders, state: PartitionState) -> PartitionState | None:
        live = self._electable(order.partition, state.replicas)
        if order.election is Election.PREFERRED:
            is_needed = state.leader != state.replicas[0]
            return elected(state, Strategy.PREFERRED, live, self._settings) if is_needed else None
        return None if state.leader in live else elected_uncleanly(state, live, self._settings)

    def _moved(self, order: AlterPartitionReassignments, state: PartitionState) -> PartitionState | None:
        live = self._electable(order.partition, (*state.replicas, *order.replicas))
        if order.replicas:
            return reassigned(state, moving_to(state, order.replicas), live, self._settings)
        if not state.is_reassigning or cancelled(state).loses:
            return None
        return reassigned(state, cancelled(state), live, self._settings)

    # The partitions and their replicas.

    def _take_in(self, partition: int, state: PartitionState, out: Outbox) -> None:
        """Keep a partition state unless a newer one is known, and forget the replicas that it no longer has."""
        known = self._states.get(partition)
        if known is not None and known.partition_epoch >= state.partition_epoch:
            return
        self._states[partition] = state
        for broker in () if known is None else known.replicas:
            if broker not in state.replicas:
                # Whether or not its broker ever answers.
                self._offline.discard((partition, broker))
                self._epochs.pop((partition, broker), None)
                self._stop(partition, broker, state.leader_epoch, out, deletes=True)

    def _replicas_of(self, partition: int) -> tuple[BrokerId, ...]:
        state = self._states.get(partition)
        if state is not None:
            return state.replicas
        assert self._read is not None, partition
        return self._read.unmade[partition].replicas

    def _is_offline(self, partition: int, broker: BrokerId) -> bool:
        """Return whether a replica's broker has no session or another epoch, or its directory has failed."""
        epoch = self._live.get(broker)
        if epoch is None or self._failed.get((partition, broker)) == epoch:
            return True
        return self._epochs.get((partition, broker), epoch) != epoch

    def _electable(self, partition: int, replicas: Iterable[BrokerId]) -> frozenset[BrokerId]:
        """Return the brokers that may lead: their replica is online and they are not in controlled shutdown."""
        return frozenset(
            broker for broker in replicas if broker not in self._stopping and not self._is_offline(partition, broker)
        )

    # What comes next.

    def _look_at(self, partition: int, out: Outbox) -> None:
        """Do the next step of a partition: a write, or LeaderAndIsr to its replicas."""
        state = self._states.get(partition)
        live = self._electable(partition, self._replicas_of(partition))
        if state is None:
            self._bring_online(partition)
            after = first_state(self._replicas_of(partition), live)
        else:
            after = self._next_of(partition, state, live, out)
        if after is not None:
            self._write(partition, after, out)
        elif state is not None:
            for broker in state.replicas:
                if broker in self._live and (partition, broker) not in self._offline:
                    topic = self._topics[partition]
                    order = LeaderAndIsr(self.epoch, self._live[broker], partition, topic, state)
                    out.send(Address(NodeId(broker)), order)

    def _next_of(
        self, partition: int, state: PartitionState, live: frozenset[BrokerId], out: Outbox
    ) -> PartitionState | None:
        """Return the next state of a partition to write; None if there is nothing to write, or no election succeeds."""
        settings = self._settings
        phase = Phase(replicas=state.replicas, isr=state.isr, adding=state.adding, removing=state.removing)
        if completed(phase, settings.rules) is not None:
            after = reassigned(state, phase, live, settings)
            if after is not None:
                return after
        self._bring_online(partition)
        after = None
        if not state.has_leader or self._is_offline(partition, state.leader):
            after = elected(state, Strategy.OFFLINE, live, settings)
        elif state.leader in self._stopping and len(state.replicas) > 1:
            after = elected(state, Strategy.CONTROLLED_SHUTDOWN, live, settings)
        return after or self._next_isr(partition, state, out)

    def _bring_online(self, partition: int) -> None:
        """Bring replicas on live brokers that do not stop online."""
        for broker in self._electable(partition, self._replicas_of(partition)):
            self._offline.discard((partition, broker))
            self._epochs[partition, broker] = self._live[broker]

    def _next_isr(self, partition: int, state: PartitionState, out: Outbox) -> PartitionState | None:
        """Take replicas offline, and return the partition without one that is still in the ISR."""
        for broker in state.replicas:
            is_gone = self._is_offline(partition, broker)
            stops = broker in self._stopping and broker != state.leader and len(state.replicas) > 1
            if (partition, broker) in self._offline or not (is_gone or stops):
                continue
            after = without(state, broker, self._settings)
            if after is not None:
                return after
            self._offline.add((partition, broker))
            self._epochs.pop((partition, broker), None)
            if not is_gone:
                self._stop(partition, broker, state.leader_epoch, out, deletes=False)
            elif not self._is_offline(partition, broker):
                # The response was of an earlier incarnation.
                self._bring_online(partition)
        return None

    # What is sent.

    def _write(self, partition: int, state: PartitionState, out: Outbox) -> None:
        out.send(Address(CONTROLLER), UpdatePartitionState(self.broker, self.epoch, partition, state))

    def _stop(self, partition: int, broker: BrokerId, epoch: LeaderEpoch, out: Outbox, *, deletes: bool) -> None:
        """Send StopReplica to a live broker; a broker without a session gets nothing."""
        if broker in self._live:
            order = StopReplica(
                controller_epoch=self.epoch,
                broker_epoch=self._live[broker],
                partition=partition,
                leader_epoch=epoch,
                deletes=deletes,
            )
            out.send(Address(NodeId(broker)), order)

    def _grant_stops(self, out: Outbox) -> None:
        """Answer ControlledShutdown once the broker's replicas are offline in all partitions with other replicas."""
        for broker, epoch in sorted(self._ungranted.items()):
            is_over = self._stopping.get(broker) != epoch
            if is_over or not any(self._holds_up(partition, broker) for partition in self._topics):
                del self._ungranted[broker]
                if not is_over:
                    out.send(Address(NodeId(broker)), ControlledShutdownResponse(epoch))

    def _holds_up(self, partition: int, broker: BrokerId) -> bool:
        replicas = self._replicas_of(partition)
        return broker in replicas and len(replicas) > 1 and (partition, broker) not in self._offline
