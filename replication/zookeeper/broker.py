"""A broker of the ZooKeeper era: it obeys the controller's requests, and may be the controller itself.
 It decides which requests of a controller it obeys, what it does as controller about who came and went, and when it
tries to become controller. Its parts in partitions are those of every broker.

Goals, most important first
1. Of two controllers the one of the older epoch is not obeyed.
2. A request for a former life of the broker, or of an older leader epoch, changes nothing.
3. What the controller tells brokers is in ZooKeeper already.

Constraints: brokers are told one by one, by messages that may come in any order: a broker knows of a partition what
it was told last, not what was decided last. That is the older mode's weakness, and why leader epochs are checked
wherever replicas meet.

How: every broker tries to make the node /controller; one succeeds. It reads everything, watches, writes a new state
for each partition that lost a member or has no leader, and tells the replicas as soon as the write has succeeded. A
notification, or the passing of a heartbeat's time, makes it read again; a write on an old version is forgotten, and
read again.

Worked example: broker 0 leads and dies; after its session the controller, 1, is notified, reads, writes leader 1 in
epoch 1, and tells 1 and 2.

Left out: the queue of state changes, partition and replica state machines by name, batching of requests.

Source: Kafka core KafkaController, ControllerChannelManager and ReplicaManager.becomeLeaderOrFollower, 2.8; KIP-380,
KAFKA-6082.
"""

from __future__ import annotations

import attrs

from broker.error_codes import ErrorCode
from broker.ids import NO_LEADER, BrokerEpoch, BrokerId, LeaderEpoch
from broker.units import TimeMs
from replication.controller_events import active_brokers, election_requested, fenced, unfenced
from replication.fencing import check_control_request
from replication.partition import PartitionState
from replication.partition_change import change, target_of
from replication.reassign import started
from replication.roles.broker_role import BrokerRole, BrokerStart
from replication.roles.messages import (
    CONTROLLER,
    Address,
    BeatDue,
    BeatTold,
    Elect,
    Message,
    NodeId,
    Reassign,
    Registered,
)
from replication.roles.outbox import Outbox
from replication.roles.settings import RoleSettings
from replication.roles.states.life import LifeInput, LifeState
from replication.terms import Moment
from replication.zookeeper.ensemble import CONTROLLER_NODE
from replication.zookeeper.messages import (
    ControlTold,
    LeaderAndIsr,
    Notified,
    Obeyed,
    ReadState,
    StateRead,
    StateWritten,
    StopReplica,
    TakeControl,
    UpdateMetadata,
    WriteState,
)

_NOBODY_YET = 0


class ZooKeeperBrokerRole(BrokerRole):
    """One life of a broker; `controls` is the controller epoch in which it is controller, 0 if it is not."""

    def __init__(self, start: BrokerStart, settings: RoleSettings) -> None:
        super().__init__(start, settings)
        self.controls = _NOBODY_YET
        self.obeys = _NOBODY_YET
        """The greatest controller epoch that it has heard of."""
        self._read: StateRead | None = None

    def handle(self, message: Message, sender: Address, now_ms: TimeMs, out: Outbox) -> None:
        """Take one message."""
        moment = Moment(now_ms, self.image.brokers)
        if isinstance(message, LeaderAndIsr):
            out.send(sender, Obeyed(message.partition, self._obey(message, moment, out)))
        elif isinstance(message, UpdateMetadata):
            self._on_update(message)
        elif isinstance(message, StopReplica):
            if self._is_obeyed(message.controller_epoch):
                self._remove(message.partition, out)
        elif isinstance(message, Notified):
            self._on_notified(message, out)
        elif isinstance(message, ControlTold):
            self._on_control_told(message, out)
        elif isinstance(message, StateRead):
            self._on_read(message, out)
        elif isinstance(message, StateWritten):
            self._on_written(message, out)
        elif isinstance(message, Obeyed):
            pass  # Orders are given again at each reading until they show; a refusal needs no more.
        elif isinstance(message, Elect | Reassign):
            self._on_order(message, out)
        elif isinstance(message, BeatTold) and message.error is ErrorCode.STALE_BROKER_EPOCH:
            self._open_again(out)
        else:
            super().handle(message, sender, now_ms, out)
            if isinstance(message, BeatDue):
                self._seek(out)

    # Sessions.

    def _on_registered(self, told: Registered, out: Outbox) -> None:
        if told.epoch is None or self.epoch is not None:
            return
        self.epoch = told.epoch
        for role in self.roles.values():
            role.broker_epoch = told.epoch
        if self.life is LifeState.STARTING:
            self._live(LifeInput.CAUGHT_UP)
            out.wake(self.settings.heartbeat_ms, BeatDue())
        self._beat(out)
        self._seek(out)

    def _beat(self, out: Outbox) -> None:
        if self.epoch is not None:
            super()._beat(out)

    def _open_again(self, out: Outbox) -> None:
        """Begin another session: the former one has ended, and with it the broker's control."""
        self.controls = _NOBODY_YET
        if self.epoch is not None:
            self.epoch = None
            self._register(out)

    def _ask_metadata(self, out: Outbox) -> None:
        """Ask nobody: the controller tells."""

    # Requests of the controller.

    def _is_obeyed(self, controller_epoch: int) -> bool:
        if controller_epoch < self.obeys:
            return False
        self.obeys = controller_epoch
        return True

    def _obey(self, order: LeaderAndIsr, moment: Moment, out: Outbox) -> ErrorCode:
        """Take an order of the controller, or return why not; one of a leader epoch that is known is taken already."""
        if not self._is_obeyed(order.controller_epoch):
            return ErrorCode.STALE_CONTROLLER_EPOCH
        own_epoch = BrokerEpoch(-1) if self.epoch is None else self.epoch
        error = check_control_request(own_epoch, order.broker_epoch, self.settings.terms.rules)
        role = self.roles.get(order.partition)
        is_known = role is not None and role.state.leader_epoch >= order.state.leader_epoch
        if error is not ErrorCode.NONE or is_known or self.epoch is None:
            return error
        self.image.partitions[order.partition] = order.state
        self.image.topics[order.partition] = order.topic
        self._publish(order.partition, order.state, moment, out)
        return ErrorCode.NONE

    def _on_update(self, news: UpdateMetadata) -> None:
        if not self._is_obeyed(news.controller_epoch) or news.read.offset < self.image.offset:
            return
        self.image.brokers = dict(news.read.brokers)
        self.image.partitions = dict(news.read.partitions)
        self.image.topics = dict(news.read.topics)
        self.image.offset = news.read.offset

    # As controller.

    def _seek(self, out: Outbox) -> None:
        """Try to become controller, or read everything again as controller."""
        if self.epoch is None:
            return
        if self.controls:
            out.send(Address(CONTROLLER), ReadState(self.broker, self.epoch))
        else:
            out.send(Address(CONTROLLER), TakeControl(self.broker, self.epoch))

    def _on_control_told(self, told: ControlTold, out: Outbox) -> None:
        if told.controller == self.broker and not self.controls:
            self.controls = told.controller_epoch
            self._seek(out)
        elif told.controller_epoch > self.controls and told.controller != self.broker:
            self.controls = _NOBODY_YET

    def _on_notified(self, notified: Notified, out: Outbox) -> None:
        if notified.path == CONTROLLER_NODE:
            self.controls = _NOBODY_YET
        self._seek(out)

    def _on_read(self, read: StateRead, out: Outbox) -> None:
        if not self.controls:
            return
        before_all = {} if self._read is None else self._read.partitions
        self._read = read
        for partition, state in sorted(read.partitions.items()):
            after = self._repaired(state, read)
            if after is not None:
                out.send(Address(CONTROLLER), WriteState(self.broker, self.controls, partition, after))
            else:
                self._tell_replicas(partition, state, read, out)
        for broker in sorted(active_brokers(read.brokers)):
            out.send(Address(NodeId(broker)), UpdateMetadata(self.controls, read))
            for partition, before in sorted(before_all.items()):
                if _is_dropped(broker, before, read.partitions.get(partition)):
                    out.send(Address(NodeId(broker)), StopReplica(self.controls, partition))

    def _repaired(self, state: PartitionState, read: StateRead) -> PartitionState | None:
        """Return a partition without a member that is gone, moved if it can be, or led; None if all is well."""
        active, terms = active_brokers(read.brokers), self.settings.terms
        for member in state.isr:
            if member not in active and (state.leader == member or len(state.isr) > 1):
                return fenced(state, member, active, terms)
        if state.is_reassigning:
            # Complete it, if all that it waits for are in sync.
            return change(state, target_of(state, state.isr, terms), active, terms)
        back = next((broker for broker in state.replicas if broker in active), None)
        return unfenced(state, back, active, terms) if back is not None and state.leader == NO_LEADER else None

    def _on_written(self, told: StateWritten, out: Outbox) -> None:
        read = self._read
        if told.is_written and self.controls and read is not None:
            self._tell_replicas(told.partition, told.state, read, out)
        # There may be more to repair; and whoever lost a race has to read what won.
        self._seek(out)

    def _tell_replicas(self, partition: int, state: PartitionState, read: StateRead, out: Outbox) -> None:
        for broker in state.replicas:
            status = read.brokers.get(broker)
            if status is not None and status.is_active:
                topic = read.topics[partition]
                order = LeaderAndIsr(self.controls, status.epoch, partition, topic, state)
                out.send(Address(NodeId(broker)), order)

    def _on_order(self, order: Elect | Reassign, out: Outbox) -> None:
        """Do what an operator asks, as far as this mode has it: an election, or another order of the replicas."""
        if not self.controls or self._read is None:
            return
        state, terms = self._read.partitions[order.partition], self.settings.terms
        active = active_brokers(self._read.brokers)
        after: PartitionState | None
        if isinstance(order, Elect):
            _, after = election_requested(state, order.election, active, terms)
        else:
            target = target_of(state, state.isr, terms)
            after = change(state, attrs.evolve(target, phase=started(state, order.replicas)), active, terms)
            if after is not None and after.leader_epoch == state.leader_epoch:
                # Replicas look at an order of a new leader epoch only.
                after = attrs.evolve(after, leader_epoch=LeaderEpoch(state.leader_epoch + 1))
        if after is not None and after is not state:
            out.send(Address(CONTROLLER), WriteState(self.broker, self.controls, order.partition, after))


def _is_dropped(broker: BrokerId, before: PartitionState, after: PartitionState | None) -> bool:
    """Return whether a broker has lost its part in a partition, or all have."""
    return broker in before.replicas and (after is None or broker not in after.replicas)
