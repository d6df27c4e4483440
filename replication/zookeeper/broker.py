"""Model a broker of the ZooKeeper era: it applies the controller's requests, and may be the controller itself.

The controller sends each broker its own requests, and they may arrive in any order: a broker knows the last request
that it received for a partition, not the controller's last decision. This is the weakness of ZooKeeper mode, and the
reason why replicas check leader epochs in each other's requests. Every broker tries to create the znode /controller;
one succeeds, and reads the znodes again when a watch fires or a heartbeat is due. A broker that wants to stop sends
ControlledShutdown with each heartbeat, `STOP_ATTEMPTS_MAX` times at most.

Source: Kafka core KafkaController, KafkaServer.controlledShutdown, ControllerChannelManager and
ReplicaManager.becomeLeaderOrFollower and stopReplicas, 2.8; KIP-380, KIP-570.
"""

from __future__ import annotations

from typing import Final

from broker.error_codes import ErrorCode
from broker.ids import NO_LEADER, BrokerId
from broker.units import TimeMs
from replication.roles.broker_role import BrokerRole
from replication.roles.follower import FollowerRole
from replication.roles.hosted import BrokerStart
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
from replication.roles.states.lifecycle import LifecycleInput, LifecycleState
from replication.rules.fencing import check_control_request
from replication.rules.partition import UNKNOWN_BROKER_EPOCH
from replication.rules.settings import Moment
from replication.zookeeper.ensemble import CONTROLLER_NODE
from replication.zookeeper.kafka_controller import KafkaController
from replication.zookeeper.messages import (
    CloseSession,
    ControlledShutdown,
    ControlledShutdownResponse,
    GetClusterState,
    GetClusterStateResponse,
    LeaderAndIsr,
    LeaderAndIsrResponse,
    RegisterController,
    RegisterControllerResponse,
    StopReplica,
    StopReplicaResponse,
    UpdateMetadata,
    UpdatePartitionStateResponse,
    WatchNotification,
)

STOP_ATTEMPTS_MAX: Final = 3
"""The number of ControlledShutdown requests of a broker; Kafka's controlled.shutdown.max.retries."""

_FOR_THE_CONTROLLER: Final = (
    GetClusterStateResponse,
    UpdatePartitionStateResponse,
    LeaderAndIsrResponse,
    StopReplicaResponse,
    ControlledShutdown,
    ElectLeaders,
    AlterPartitionReassignments,
)


class ZooKeeperBrokerRole(BrokerRole):
    """Model one incarnation of a broker in ZooKeeper mode; `kafka_controller` is set while it is the controller."""

    def __init__(self, start: BrokerStart, role_settings: RoleSettings) -> None:
        super().__init__(start, role_settings)
        self.kafka_controller: KafkaController | None = None
        self.controller_epoch = 0
        """The greatest controller epoch in the requests received so far."""
        self._controller = NO_LEADER
        self._stop_attempts = 0
        self._may_close = False

    def handle(self, message: Message, sender: Address, now_ms: TimeMs, out: Outbox) -> None:
        """Handle one message; answers and requests go to `out`."""
        if isinstance(message, _FOR_THE_CONTROLLER):
            if self.kafka_controller is not None:
                self.kafka_controller.handle(message, BrokerId(sender.node), out)
                if isinstance(message, UpdatePartitionStateResponse):
                    # Others may have written meanwhile; and whoever lost a race has to read what won.
                    self._seek(out)
        elif isinstance(message, LeaderAndIsr | StopReplica):
            self._on_control(message, sender, Moment(now_ms, self.image.brokers), out)
        elif isinstance(message, UpdateMetadata):
            self._on_update(message)
        elif isinstance(message, WatchNotification):
            self._on_notified(message, out)
        elif isinstance(message, RegisterControllerResponse):
            self._on_register_controller_response(message, out)
        elif isinstance(message, ControlledShutdownResponse):
            self._may_close = message.epoch == self.epoch
            self._send_heartbeat(out)
        elif isinstance(message, BrokerHeartbeatResponse) and message.error is ErrorCode.STALE_BROKER_EPOCH:
            if not self._is_closing:
                self._open_again(out)
        else:
            super().handle(message, sender, now_ms, out)
            if isinstance(message, HeartbeatDue):
                self._seek(out)

    # Sessions.

    def _on_registered(self, response: BrokerRegistrationResponse, out: Outbox) -> None:
        if response.epoch is None or self.epoch is not None:
            return
        self.epoch = response.epoch
        for role in self.roles.values():
            role.begin_session(response.epoch)
        if self.lifecycle is LifecycleState.STARTING:
            self._step_lifecycle(LifecycleInput.CAUGHT_UP)
            out.wake(self.role_settings.heartbeat_ms, HeartbeatDue())
        self._send_heartbeat(out)
        self._seek(out)

    def _send_heartbeat(self, out: Outbox) -> None:
        if self.epoch is None:
            return
        if self._is_closing:
            out.send(Address(CONTROLLER), CloseSession(self.broker, self.epoch))
        else:
            super()._send_heartbeat(out)
            if self.lifecycle is LifecycleState.PENDING_CONTROLLED_SHUTDOWN:
                self._stop_attempts += 1
                if self._controller != NO_LEADER:
                    out.send(Address(NodeId(self._controller)), ControlledShutdown(self.broker, self.epoch))

    @property
    def _is_closing(self) -> bool:
        """Whether the broker stops, and the controller has agreed or the last attempt was made."""
        return self._may_close or self._stop_attempts >= STOP_ATTEMPTS_MAX

    def _open_again(self, out: Outbox) -> None:
        """Open another session; with the former session the broker's role as controller, or its shutdown, has ended."""
        self.kafka_controller = None
        if self.epoch is not None:
            self.epoch = None
            self._stop_attempts, self._may_close = 0, False
            self._register(out)

    def _fetch_metadata(self, out: Outbox) -> None:
        """Send nothing, as the controller sends UpdateMetadata by itself."""

    # Requests of the controller.

    def _is_current_controller(self, controller_epoch: int) -> bool:
        if controller_epoch < self.controller_epoch:
            return False
        self.controller_epoch = controller_epoch
        return True

    def _on_control(self, order: LeaderAndIsr | StopReplica, sender: Address, moment: Moment, out: Outbox) -> None:
        """Apply a request of the controller, or answer with the error that refuses it."""
        own_epoch = UNKNOWN_BROKER_EPOCH if self.epoch is None else self.epoch
        error = ErrorCode.STALE_CONTROLLER_EPOCH
        if self._is_current_controller(order.controller_epoch):
            error = check_control_request(own_epoch, order.broker_epoch, self.role_settings.settings.rules)
        is_taken = error is ErrorCode.NONE and self.epoch is not None
        if isinstance(order, LeaderAndIsr):
            error = self._become_leader_or_follower(order, moment, out) if is_taken else error
            out.send(sender, LeaderAndIsrResponse(order.partition, error, own_epoch))
        else:
            error = self._stop(order, moment, out) if is_taken else error
            out.send(sender, StopReplicaResponse(order.partition, order.deletes, error, own_epoch))

    def _become_leader_or_follower(self, order: LeaderAndIsr, moment: Moment, out: Outbox) -> ErrorCode:
        """Lead or follow a partition; a request with a known leader epoch was applied before."""
        role = self.roles.get(order.partition)
        if order.partition in self.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if role is None or role.state.leader_epoch < order.state.leader_epoch:
            self.image.partitions[order.partition] = order.state
            self.image.topics[order.partition] = order.topic
            self._publish(order.partition, order.state, moment, out)
            self._notify_hosted(order.partition, moment.now_ms, out)
        return ErrorCode.NONE

    def _stop(self, order: StopReplica, moment: Moment, out: Outbox) -> ErrorCode:
        """Stop a replica, and delete its log if the request says so; a replica of a later leader epoch goes on."""
        role = self.roles.get(order.partition)
        if order.partition in self.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if role is not None and order.leader_epoch < role.state.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if order.deletes:
            self._remove(order.partition, out)
            self.start.drop_log(order.partition)
            self._notify_hosted(order.partition, moment.now_ms, out)
        elif isinstance(role, FollowerRole):
            self._leave(order.partition)
        return ErrorCode.NONE

    def _on_update(self, update: UpdateMetadata) -> None:
        if not self._is_current_controller(update.controller_epoch) or update.read.offset < self.image.offset:
            return
        self.image.brokers = dict(update.read.brokers)
        self.image.partitions = dict(update.read.partitions)
        self.image.topics = dict(update.read.topics)
        self.image.offset = update.read.offset

    # As controller.

    def _seek(self, out: Outbox) -> None:
        """Try to become controller, or read all znodes again as controller."""
        if self.epoch is None:
            return
        if self.kafka_controller is None:
            out.send(Address(CONTROLLER), RegisterController(self.broker, self.epoch))
        else:
            out.send(Address(CONTROLLER), GetClusterState(self.broker, self.epoch))

    def _on_register_controller_response(self, response: RegisterControllerResponse, out: Outbox) -> None:
        self._controller = response.controller
        own = (self.broker, -1 if self.kafka_controller is None else self.kafka_controller.epoch)
        # An earlier response may come later; nobody controls as long as the node is gone, in the same epoch.
        if response.controller_epoch >= own[1] and (response.controller, response.controller_epoch) != own:
            self.kafka_controller = None
        if response.controller == self.broker and self.kafka_controller is None:
            self.kafka_controller = KafkaController(self.broker, response.controller_epoch, self.role_settings.settings)
            self._seek(out)

    def _on_notified(self, notified: WatchNotification, out: Outbox) -> None:
        if notified.path == CONTROLLER_NODE:
            self.kafka_controller = None
        self._seek(out)
