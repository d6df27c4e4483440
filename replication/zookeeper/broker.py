"""A broker of the ZooKeeper era: it obeys the controller's requests, and may be the controller itself.

It decides which requests of a controller it obeys, when it tries to become controller, and how it stops.

Goals, most important first
1. Of two controllers the one of the older epoch is not obeyed.
2. A request for a former life of the broker, or of an older leader epoch, changes nothing.
3. A broker that stops hands over what it leads before its session ends.

Constraints: brokers are told one by one, by messages that may come in any order: a broker knows of a partition what
it was told last, not what was decided last. That is the older mode's weakness, and why leader epochs are checked
wherever replicas meet.

How: every broker tries to make the node /controller; one succeeds, and its term begins (`replication.zookeeper.term`).
A notification, or the passing of a heartbeat's time, makes the controller read. A broker that wants to stop asks the
controller at each heartbeat; when it is let go, or has asked `STOP_ATTEMPTS_MAX` times, it ends its session.

Worked example: broker 0 leads and dies; after its session the controller, 1, is notified, reads, writes leader 1 in
epoch 1, and tells 1 and 2.

Left out: a stop that is called off ends the session too, and begins another one: a controller knows no way back.

Source: Kafka core KafkaController, KafkaServer.controlledShutdown, ControllerChannelManager and
ReplicaManager.becomeLeaderOrFollower and stopReplicas, 2.8; KIP-380, KIP-570.
"""

from __future__ import annotations

from typing import Final

from broker.error_codes import ErrorCode
from broker.ids import NO_LEADER, BrokerId
from broker.units import TimeMs
from replication.roles.broker_role import BrokerRole
from replication.roles.broker_start import BrokerStart
from replication.roles.follower import FollowerRole
from replication.roles.messages import (
    CONTROLLER,
    Address,
    AlterPartitionReassignments,
    BrokerHeartbeatResponse,
    BrokerRegistrationResponse,
    ElectLeaders,
    HeartbeatDue,
    Message,
    NodeId,
)
from replication.roles.outbox import Outbox
from replication.roles.settings import RoleSettings
from replication.roles.states.life import LifeInput, LifeState
from replication.rules.fencing import check_control_request
from replication.rules.partition import UNKNOWN_BROKER_EPOCH
from replication.rules.settings import Moment
from replication.zookeeper.deletion import EPOCH_DURING_DELETE
from replication.zookeeper.messages import (
    AskToStop,
    CloseSession,
    ControlTold,
    LeaderAndIsr,
    Notified,
    Obeyed,
    ReadState,
    StateRead,
    StateWritten,
    StopGranted,
    Stopped,
    StopReplica,
    TakeControl,
    UpdateMetadata,
)
from replication.zookeeper.term import ControllerTerm, Office
from replication.zookeeper.znodes import CONTROLLER_NODE

STOP_ATTEMPTS_MAX: Final = 3
"""How often a broker that stops asks the controller; Kafka's controlled.shutdown.max.retries."""

_FOR_THE_CONTROLLER: Final = (
    StateRead,
    StateWritten,
    Obeyed,
    Stopped,
    AskToStop,
    ElectLeaders,
    AlterPartitionReassignments,
)


class ZooKeeperBrokerRole(BrokerRole):
    """One life of a broker; `term` is its term of office while it is controller."""

    def __init__(self, start: BrokerStart, role_settings: RoleSettings) -> None:
        super().__init__(start, role_settings)
        self.term: ControllerTerm | None = None
        self.obeys = 0
        """The greatest controller epoch that it has heard of."""
        self._controller = NO_LEADER
        self._stop_attempts = 0
        self._may_close = False

    def handle(self, message: Message, sender: Address, now_ms: TimeMs, out: Outbox) -> None:
        """Take one message."""
        if isinstance(message, _FOR_THE_CONTROLLER):
            if self.term is not None:
                self._in_office(self.term, message, sender, out)
        elif isinstance(message, LeaderAndIsr | StopReplica):
            self._on_control(message, sender, Moment(now_ms, self.image.brokers), out)
        elif isinstance(message, UpdateMetadata):
            self._on_update(message)
        elif isinstance(message, Notified):
            self._on_notified(message, out)
        elif isinstance(message, ControlTold):
            self._on_control_told(message, out)
        elif isinstance(message, StopGranted):
            self._may_close = message.epoch == self.epoch
            self._beat(out)
        elif isinstance(message, BrokerHeartbeatResponse) and message.error is ErrorCode.STALE_BROKER_EPOCH:
            if not self._is_closing:
                self._open_again(out)
        else:
            super().handle(message, sender, now_ms, out)
            if isinstance(message, HeartbeatDue):
                self._seek(out)

    # Sessions.

    def _on_registered(self, told: BrokerRegistrationResponse, out: Outbox) -> None:
        if told.epoch is None or self.epoch is not None:
            return
        self.epoch = told.epoch
        for role in self.roles.values():
            role.begin_session(told.epoch)
        if self.life is LifeState.STARTING:
            self._live(LifeInput.CAUGHT_UP)
            out.wake(self.role_settings.heartbeat_ms, HeartbeatDue())
        self._beat(out)
        self._seek(out)

    def _beat(self, out: Outbox) -> None:
        if self.epoch is None:
            return
        if self._stop_attempts > 0 and self.life is LifeState.RUNNING:
            out.send(Address(CONTROLLER), CloseSession(self.broker, self.epoch))
            self._open_again(out)
        elif self._is_closing:
            out.send(Address(CONTROLLER), CloseSession(self.broker, self.epoch))
        else:
            super()._beat(out)
            if self.life is LifeState.PENDING_CONTROLLED_SHUTDOWN:
                self._stop_attempts += 1
                if self._controller != NO_LEADER:
                    out.send(Address(NodeId(self._controller)), AskToStop(self.broker, self.epoch))

    @property
    def _is_closing(self) -> bool:
        """Whether it stops and has been let go, or has given up waiting for it."""
        return self.life is not LifeState.RUNNING and (self._may_close or self._stop_attempts >= STOP_ATTEMPTS_MAX)

    def _open_again(self, out: Outbox) -> None:
        """Begin another session: the former one has ended, and with it the broker's control, or its wish to stop."""
        self.term = None
        if self.epoch is not None:
            self.epoch = None
            self._stop_attempts, self._may_close = 0, False
            self._register(out)

    def _ask_metadata(self, out: Outbox) -> None:
        """Ask nobody: the controller tells."""

    # Requests of the controller.

    def _is_obeyed(self, controller_epoch: int) -> bool:
        if controller_epoch < self.obeys:
            return False
        self.obeys = controller_epoch
        return True

    def _on_control(self, order: LeaderAndIsr | StopReplica, sender: Address, moment: Moment, out: Outbox) -> None:
        """Take an order of the controller, or answer why not."""
        own_epoch = UNKNOWN_BROKER_EPOCH if self.epoch is None else self.epoch
        error = ErrorCode.STALE_CONTROLLER_EPOCH
        if self._is_obeyed(order.controller_epoch):
            error = check_control_request(own_epoch, order.broker_epoch, self.role_settings.settings.rules)
        is_taken = error is ErrorCode.NONE and self.epoch is not None
        if isinstance(order, LeaderAndIsr):
            error = self._obey(order, moment, out) if is_taken else error
            out.send(sender, Obeyed(order.partition, error, own_epoch))
        else:
            error = self._stop(order, moment, out) if is_taken else error
            out.send(sender, Stopped(order.partition, order.deletes, error, own_epoch))

    def _obey(self, order: LeaderAndIsr, moment: Moment, out: Outbox) -> ErrorCode:
        """Lead or follow; an order of a leader epoch that is known is taken already."""
        role = self.roles.get(order.partition)
        if order.partition in self.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if role is None or role.state.leader_epoch < order.state.leader_epoch:
            led_epoch = self._led_epoch(order.partition)
            self.image.partitions[order.partition] = order.state
            self.image.topics[order.partition] = order.topic
            self._publish(order.partition, order.state, moment, out)
            self._notify_hosted_roles(order.partition, led_epoch, moment.now_ms, out)
        return ErrorCode.NONE

    def _stop(self, order: StopReplica, moment: Moment, out: Outbox) -> ErrorCode:
        """Fetch and serve no more, and remove the log if it is to be deleted; a replica of a later epoch goes on."""
        role = self.roles.get(order.partition)
        if order.partition in self.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if role is not None and EPOCH_DURING_DELETE != order.leader_epoch < role.state.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if order.deletes:
            led_epoch = self._led_epoch(order.partition)
            self._remove(order.partition, out)
            self.start.drop_log(order.partition)
            self._notify_hosted_roles(order.partition, led_epoch, moment.now_ms, out)
        elif isinstance(role, FollowerRole):
            self._leave(order.partition)
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
        if self.term is None:
            out.send(Address(CONTROLLER), TakeControl(self.broker, self.epoch))
        else:
            out.send(Address(CONTROLLER), ReadState(self.broker, self.epoch))

    def _on_control_told(self, told: ControlTold, out: Outbox) -> None:
        self._controller = told.controller
        own = (self.broker, -1 if self.term is None else self.term.epoch)
        # What was told earlier may come later; nobody controls as long as the node is gone, in the same epoch.
        if told.controller_epoch >= own[1] and (told.controller, told.controller_epoch) != own:
            self.term = None
        if told.controller == self.broker and self.term is None:
            self.term = ControllerTerm(
                Office(self.broker, told.controller_epoch, self.role_settings.settings, self.start.tell)
            )
            self._seek(out)

    def _on_notified(self, notified: Notified, out: Outbox) -> None:
        if notified.path == CONTROLLER_NODE:
            self.term = None
        self._seek(out)

    def _in_office(self, term: ControllerTerm, message: Message, sender: Address, out: Outbox) -> None:
        """Take a message that is for the controller."""
        broker = BrokerId(sender.node)
        if isinstance(message, StateRead):
            term.on_read(message, out)
        elif isinstance(message, StateWritten):
            term.on_written(message, out)
            # Others may have written meanwhile; and whoever lost a race has to read what won.
            self._seek(out)
        elif isinstance(message, Obeyed):
            term.on_obeyed(message, broker, out)
        elif isinstance(message, Stopped):
            term.on_stopped(message, broker, out)
        elif isinstance(message, AskToStop):
            term.on_ask_to_stop(message, out)
        elif isinstance(message, ElectLeaders | AlterPartitionReassignments):
            term.on_order(message, out)
