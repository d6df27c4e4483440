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

from collections.abc import Iterable, Mapping

from broker.error_codes import ErrorCode
from broker.ids import BrokerEpoch, BrokerId, LeaderEpoch
from replication.roles.messages import CONTROLLER, Address, AlterPartitionReassignments, ElectLeaders, NodeId
from replication.roles.outbox import Outbox
from replication.rules.election import Election
from replication.rules.partition import BrokerStatus, PartitionState
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


class LiveBrokers:
    """Hold the brokers as ZooKeeper listed them last; `stopping` maps those in controlled shutdown to epochs.

    A broker epoch identifies a broker's session: a replica that was brought online in another one is offline.
    """

    def __init__(self) -> None:
        self.stopping: dict[BrokerId, BrokerEpoch] = {}
        self._brokers: Mapping[BrokerId, BrokerStatus] = {}
        self._epochs: dict[tuple[int, BrokerId], BrokerEpoch] = {}
        self._failed: dict[tuple[int, BrokerId], BrokerEpoch] = {}

    def update(self, brokers: Mapping[BrokerId, BrokerStatus]) -> None:
        """Replace the brokers; forget the controlled shutdowns of earlier broker epochs."""
        self._brokers = brokers
        self.stopping = {broker: epoch for broker, epoch in self.stopping.items() if self.epoch_of(broker) == epoch}

    def epoch_of(self, broker: BrokerId) -> BrokerEpoch | None:
        """Return the epoch of a broker with a session; None for any other."""
        status = self._brokers.get(broker)
        return status.epoch if status is not None and status.is_active else None

    def brokers(self) -> tuple[BrokerId, ...]:
        """Return the brokers with sessions, ascending."""
        return tuple(broker for broker in sorted(self._brokers) if self.epoch_of(broker) is not None)

    def record_epoch(self, partition: int, broker: BrokerId) -> None:
        """Record that a replica belongs to its broker's current epoch."""
        epoch = self.epoch_of(broker)
        assert epoch is not None, (partition, broker)
        self._epochs[partition, broker] = epoch

    def forget_epoch(self, partition: int, broker: BrokerId) -> None:
        """Forget the broker epoch of a replica."""
        self._epochs.pop((partition, broker), None)

    def record_failed_directory(self, partition: int, broker: BrokerId, epoch: BrokerEpoch) -> None:
        """Record that a replica's directory failed under a broker epoch."""
        self._failed[partition, broker] = epoch

    def is_offline(self, partition: int, broker: BrokerId) -> bool:
        """Return whether a replica's broker has no session or another epoch, or its directory has failed."""
        epoch = self.epoch_of(broker)
        if epoch is None or self._failed.get((partition, broker)) == epoch:
            return True
        return self._epochs.get((partition, broker), epoch) != epoch

    def electable(self, partition: int, replicas: Iterable[BrokerId]) -> frozenset[BrokerId]:
        """Return the brokers that may lead: their replica is online and they are not in controlled shutdown."""
        return frozenset(
            broker for broker in replicas if broker not in self.stopping and not self.is_offline(partition, broker)
        )


class KafkaController:
    """Model one controller's memory (ControllerContext)."""

    def __init__(self, broker: BrokerId, epoch: int, settings: PartitionSettings) -> None:
        self.broker = broker
        self.epoch = epoch
        self._settings = with_all_targets(settings)
        self._live_brokers = LiveBrokers()
        self._read: GetClusterStateResponse | None = None
        self._states: dict[int, PartitionState] = {}
        self._topics: dict[int, str] = {}
        self._offline: set[tuple[int, BrokerId]] = set()
        """The replicas that are out of the ISR because their broker is dead or stopping."""
        self._ungranted: dict[BrokerId, ControlledShutdown] = {}

    # What arrives.

    def on_get_cluster_state_response(self, read: GetClusterStateResponse, out: Outbox) -> None:
        """Take in all znodes, step every partition, and send UpdateMetadata to all."""
        if self._read is not None and read.transaction < self._read.transaction:
            return  # A later one has overtaken it.
        self._read = read
        self._live_brokers.update(read.brokers)
        present = {**{partition: order.topic for partition, order in read.unmade.items()}, **read.topics}
        for partition in sorted(set(self._topics) - set(present)):
            del self._topics[partition]
            self._states.pop(partition, None)
            self._forget({each for each in self._offline if each[0] == partition})
        for partition, topic in sorted(present.items()):
            self._topics[partition] = topic
            if partition in read.partitions:
                self._take_in(partition, read.partitions[partition], out)
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
        if state is None:
            return
        after = self._elected(order, state) if isinstance(order, ElectLeaders) else self._moved(order, state)
        if after is not None:
            self._write(order.partition, after, out)

    def _elected(self, order: ElectLeaders, state: PartitionState) -> PartitionState | None:
        live = self._live_brokers.electable(order.partition, state.replicas)
        if order.election is Election.PREFERRED:
            is_needed = state.leader != state.replicas[0]
            return elected(state, Strategy.PREFERRED, live, self._settings) if is_needed else None
        return None if state.leader in live else elected_uncleanly(state, live, self._settings)

    def _moved(self, order: AlterPartitionReassignments, state: PartitionState) -> PartitionState | None:
        live = self._live_brokers.electable(order.partition, (*state.replicas, *order.replicas))
        if order.replicas:
            return reassigned(state, moving_to(state, order.replicas), live, self._settings)
        if not state.is_reassigning or cancelled(state).loses:
            return None
        return reassigned(state, cancelled(state), live, self._settings)

    # The partitions.

    def _take_in(self, partition: int, state: PartitionState, out: Outbox) -> None:
        """Keep a partition state unless a newer one is known, and forget the replicas that it no longer has."""
        known = self._states.get(partition)
        if known is not None and known.partition_epoch >= state.partition_epoch:
            return
        self._states[partition] = state
        for broker in () if known is None else known.replicas:
            if broker not in state.replicas:
                self._forget({(partition, broker)})
                self._stop(partition, broker, state.leader_epoch, out, deletes=True)

    def _forget(self, replicas: Iterable[tuple[int, BrokerId]]) -> None:
        """Forget replicas that a reassignment has removed, whether or not their broker ever answers."""
        for replica in replicas:
            self._offline.discard(replica)
            self._live_brokers.forget_epoch(*replica)

    # What comes next.

    def _look_at(self, partition: int, out: Outbox) -> None:
        """Do the next step of a partition: a write, or LeaderAndIsr to its replicas."""
        state = self._states.get(partition)
        live = self._live_brokers.electable(partition, self._replicas_of(partition))
        if state is None:
            self._bring_online(partition)
            after = first_state(self._replicas_of(partition), live)
        else:
            after = self._next_of(partition, state, live, out)
        if after is not None:
            self._write(partition, after, out)
        elif state is not None:
            self._tell_replicas(partition, state, out)

    def _next_of(
        self, partition: int, state: PartitionState, live: frozenset[BrokerId], out: Outbox
    ) -> PartitionState | None:
        """Return the next state of a partition to write; None if there is nothing to write."""
        settings = self._settings
        phase = Phase(replicas=state.replicas, isr=state.isr, adding=state.adding, removing=state.removing)
        if completed(phase, settings.rules) is not None:
            after = reassigned(state, phase, live, settings)
            if after is not None:
                return after
        self._bring_online(partition)
        return self._next_leader(partition, state, live) or self._next_isr(partition, state, out)

    def _bring_online(self, partition: int) -> None:
        """Bring replicas on live brokers that do not stop online."""
        for broker in self._live_brokers.electable(partition, self._replicas_of(partition)):
            self._offline.discard((partition, broker))
            self._live_brokers.record_epoch(partition, broker)

    def _next_leader(self, partition: int, state: PartitionState, live: frozenset[BrokerId]) -> PartitionState | None:
        """Return a partition after an election; None if none is due or succeeds."""
        leads = state.has_leader and not self._live_brokers.is_offline(partition, state.leader)
        if not leads:
            return elected(state, Strategy.OFFLINE, live, self._settings)
        if state.leader in self._live_brokers.stopping and len(state.replicas) > 1:
            return elected(state, Strategy.CONTROLLED_SHUTDOWN, live, self._settings)
        return None

    def _next_isr(self, partition: int, state: PartitionState, out: Outbox) -> PartitionState | None:
        """Take replicas offline, and return the partition without one that is still in the ISR."""
        for broker in state.replicas:
            is_gone = self._live_brokers.is_offline(partition, broker)
            stops = broker in self._live_brokers.stopping and broker != state.leader and len(state.replicas) > 1
            if (partition, broker) in self._offline or not (is_gone or stops):
                continue
            after = without(state, broker, self._settings)
            if after is not None:
                return after
            self._offline.add((partition, broker))
            self._live_brokers.forget_epoch(partition, broker)
            if not is_gone:
                self._stop(partition, broker, state.leader_epoch, out, deletes=False)
            elif not self._live_brokers.is_offline(partition, broker):
                # The response was of an earlier incarnation.
                self._bring_online(partition)
        return None

    # What is sent.

    def _write(self, partition: int, state: PartitionState, out: Outbox) -> None:
        out.send(Address(CONTROLLER), UpdatePartitionState(self.broker, self.epoch, partition, state))

    def _tell_replicas(self, partition: int, state: PartitionState, out: Outbox) -> None:
        for broker in state.replicas:
            broker_epoch = self._live_brokers.epoch_of(broker)
            if broker_epoch is not None and (partition, broker) not in self._offline:
                order = LeaderAndIsr(self.epoch, broker_epoch, partition, self._topics[partition], state)
                out.send(Address(NodeId(broker)), order)

    def _stop(self, partition: int, broker: BrokerId, epoch: LeaderEpoch, out: Outbox, *, deletes: bool) -> None:
        """Send StopReplica to a live broker; a broker without a session gets nothing."""
        broker_epoch = self._live_brokers.epoch_of(broker)
        if broker_epoch is not None:
            order = StopReplica(
                controller_epoch=self.epoch,
                broker_epoch=broker_epoch,
                partition=partition,
                leader_epoch=epoch,
                deletes=deletes,
            )
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
        replicas = self._replicas_of(partition)
        return broker in replicas and len(replicas) > 1 and (partition, broker) not in self._offline

    # Helpers.

    def _replicas_of(self, partition: int) -> tuple[BrokerId, ...]:
        state = self._states.get(partition)
        if state is not None:
            return state.replicas
        assert self._read is not None, partition
        return self._read.unmade[partition].replicas
