"""Model ZooKeeper as one process: it keeps Kafka's znodes, expires sessions and fires watches.

Constraints: the states of each broker's znode are the table `ZOOKEEPER_TRANSITIONS` of `broker.registration`.

Source: Kafka KafkaZkClient and ZkPartitionStateStore, 2.8; Apache ZooKeeper ClientCnxn, 3.5, and Programmer's Guide.
"""

from __future__ import annotations

import attrs

from broker.error_codes import ErrorCode
from broker.errors import UsageError
from broker.ids import NO_LEADER, BrokerEpoch, BrokerId
from broker.registration import (
    ZOOKEEPER_TRANSITIONS,
    BrokerState,
    ZookeeperInput,
    ZookeeperState,
    zookeeper_step,
)
from broker.units import DurationMs, TimeMs
from broker.zookeeper import WatchedEvent, ZnodeRefusedError
from replication.roles.controller import ControllerRole
from replication.roles.messages import (
    Address,
    AlterPartition,
    AlterPartitionReassignments,
    AlterPartitionResponse,
    BrokerHeartbeat,
    BrokerHeartbeatResponse,
    BrokerRecord,
    BrokerRegistration,
    BrokerRegistrationResponse,
    CreateTopic,
    ElectLeaders,
    Message,
    NodeId,
    PartitionRecord,
    SessionsDue,
)
from replication.roles.outbox import Outbox
from replication.roles.settings import RoleSettings
from replication.rules.alter_partition import Altered
from replication.rules.fencing import is_session_valid
from replication.rules.partition import BrokerStatus, PartitionEpoch
from replication.zookeeper.messages import (
    CloseSession,
    GetClusterState,
    GetClusterStateResponse,
    RegisterController,
    RegisterControllerResponse,
    UpdatePartitionState,
    UpdatePartitionStateResponse,
    WatchNotification,
)
from replication.zookeeper.znodes import KafkaZnodes


class ZooKeeperRole(ControllerRole):
    """Model ZooKeeper in a controller's place; `broker_nodes` holds the state of each broker's ephemeral znode."""

    def __init__(self, role_settings: RoleSettings) -> None:
        super().__init__(role_settings)
        self.nodes = KafkaZnodes()
        self.broker_nodes: dict[BrokerId, ZookeeperState] = {}
        self._heard_at_ms: dict[BrokerId, TimeMs] = {}

    def start(self, now_ms: TimeMs, out: Outbox) -> None:
        """Start; on later calls remove the znode /controller as an operator does, to have a controller elected."""
        self._notify(self.nodes.drop_controller(), out)
        self._heard_at_ms = dict.fromkeys(self._heard_at_ms, now_ms)
        out.wake(self.role_settings.session_check_ms, SessionsDue())

    def handle(self, message: Message, sender: Address, now_ms: TimeMs, out: Outbox) -> None:
        """Handle one message; answers and watch notifications go to `out`."""
        if isinstance(message, BrokerHeartbeat):
            self._on_ping(message, sender, now_ms, out)
        elif isinstance(message, AlterPartition):
            self._on_isr_write(message, sender, out)
        elif isinstance(message, UpdatePartitionState):
            self._on_write(message, sender, out)
        elif isinstance(message, GetClusterState):
            self._on_read(message, sender, out)
        elif isinstance(message, RegisterController):
            self._on_take_control(message, sender, out)
        elif isinstance(message, BrokerRegistration):
            self._on_open_session(message, sender, now_ms, out)
        elif isinstance(message, CloseSession):
            if self._is_open(message.broker, message.epoch):
                # It comes over a connection: a client that lost its own has opened another before.
                self._reconnect(message.broker)
                self._end_session(message.broker, ZookeeperInput.SESSION_CLOSED, out)
            out.send(sender, BrokerHeartbeatResponse(ErrorCode.NONE, BrokerState.SHUTDOWN_NOW))
        elif isinstance(message, SessionsDue):
            self._look_at_sessions(now_ms, out)
            out.wake(self.role_settings.session_check_ms, SessionsDue())
        else:
            self._on_order(message, out)

    def _on_order(self, message: Message, out: Outbox) -> None:
        """Write an operator's request to the znodes, or pass it to the controller."""
        if isinstance(message, CreateTopic):
            order = attrs.evolve(message, topic=message.topic or f"topic-{message.partition}")
            self._notify(self.nodes.make_topic(order), out)
        elif isinstance(message, ElectLeaders | AlterPartitionReassignments):
            if self.nodes.controller != NO_LEADER:
                out.send(Address(NodeId(self.nodes.controller)), message)
        else:
            raise UsageError(f"ZooKeeper takes no {type(message).__name__}")

    # Sessions.

    def _on_open_session(self, request: BrokerRegistration, sender: Address, now_ms: TimeMs, out: Outbox) -> None:
        broker = request.broker
        if (self._node_of(broker), ZookeeperInput.CREATE_NODE) not in ZOOKEEPER_TRANSITIONS:
            # The node of a former session is still there: it has to end first.
            out.send(sender, BrokerRegistrationResponse(None))
            return
        epoch, events = self.nodes.register(broker)
        self._step(broker, ZookeeperInput.CREATE_NODE)
        self._heard_at_ms[broker] = now_ms
        self._write(BrokerRecord(broker, BrokerStatus(epoch=epoch, rack=request.rack)))
        self._notify(events, out)
        out.send(sender, BrokerRegistrationResponse(epoch))

    def _on_ping(self, beat: BrokerHeartbeat, sender: Address, now_ms: TimeMs, out: Outbox) -> None:
        broker = beat.broker
        if not self._is_open(broker, beat.epoch):
            status = self.image.brokers.get(broker)
            # Who has begun another session has left the connection of this one, and would not read the answer.
            if status is None or status.fenced:
                out.send(sender, BrokerHeartbeatResponse(ErrorCode.STALE_BROKER_EPOCH, BrokerState.UNREGISTERED))
            return
        self._heard_at_ms[broker] = now_ms
        self._reconnect(broker)
        if beat.heartbeat.want_shutdown:
            self._step(broker, ZookeeperInput.WANTS_SHUTDOWN)
        out.send(sender, BrokerHeartbeatResponse(ErrorCode.NONE, BrokerState.UNFENCED))

    def _reconnect(self, broker: BrokerId) -> None:
        if self._node_of(broker) is ZookeeperState.DISCONNECTED:
            self._step(broker, ZookeeperInput.RECONNECTED)

    def _look_at_sessions(self, now_ms: TimeMs, out: Outbox) -> None:
        session_ms = self.role_settings.session_ms
        connection_ms = DurationMs(session_ms * 2 // 3)
        for broker, heard_at_ms in sorted(self._heard_at_ms.items()):
            if self._node_of(broker) is ZookeeperState.ABSENT:
                continue
            if not is_session_valid(heard_at_ms, now_ms, session_ms):
                self._end_session(broker, ZookeeperInput.SESSION_EXPIRED, out)
            elif self._node_of(broker) is ZookeeperState.ALIVE and not is_session_valid(
                heard_at_ms, now_ms, connection_ms
            ):
                self._step(broker, ZookeeperInput.CONNECTION_LOST)

    def _end_session(self, broker: BrokerId, event: ZookeeperInput, out: Outbox) -> None:
        """End a session, and remove its ephemeral znodes."""
        self._step(broker, event)
        self._write(BrokerRecord(broker, attrs.evolve(self.image.brokers[broker], fenced=True)))
        self._notify(self.nodes.end_session(broker), out)

    def _is_open(self, broker: BrokerId, epoch: BrokerEpoch) -> bool:
        status = self.image.brokers.get(broker)
        return status is not None and not status.fenced and status.epoch == epoch

    def _node_of(self, broker: BrokerId) -> ZookeeperState:
        return self.broker_nodes.get(broker, ZookeeperState.ABSENT)

    def _step(self, broker: BrokerId, event: ZookeeperInput) -> None:
        self.broker_nodes[broker] = zookeeper_step(self._node_of(broker), event)

    # The controller.

    def _on_take_control(self, request: RegisterController, sender: Address, out: Outbox) -> None:
        if self._is_open(request.broker, request.epoch):
            self._notify(self.nodes.take_control(request.broker), out)
            out.send(sender, RegisterControllerResponse(self.nodes.controller, self.nodes.controller_epoch))

    def _on_read(self, request: GetClusterState, sender: Address, out: Outbox) -> None:
        if self._is_open(request.broker, request.epoch):
            image, unmade = self.image, self.nodes.read_topics(request.broker)
            read = GetClusterStateResponse(
                brokers=image.brokers,
                partitions=dict(image.partitions),
                topics=dict(image.topics),
                unmade=unmade,
                offset=image.offset,
                transaction=self.nodes.tree.transaction,
            )
            out.send(sender, read)

    def _is_controller(self, broker: BrokerId, controller_epoch: int) -> bool:
        return (self.nodes.controller, self.nodes.controller_epoch) == (broker, controller_epoch)

    def _on_write(self, request: UpdatePartitionState, sender: Address, out: Outbox) -> None:
        partition, state = request.partition, request.state
        known, name = self.image.partitions.get(partition), self.nodes.topic_of(partition)
        if not self._is_controller(request.broker, request.controller_epoch):
            # As by a ControllerMovedException it learns that it controls no more, though it may have missed the watch.
            out.send(sender, RegisterControllerResponse(self.nodes.controller, self.nodes.controller_epoch))
            return
        is_written = name is not None
        if name is not None:
            try:
                events = self.nodes.write_state(name, state)
            except ZnodeRefusedError:
                is_written = False
            else:
                self._write(PartitionRecord(partition, state, name))
                self._notify(events, out)
        out.send(
            sender, UpdatePartitionStateResponse(partition, state if known is None or is_written else known, is_written)
        )

    def _on_isr_write(self, ask: AlterPartition, sender: Address, out: Outbox) -> None:
        """Write a leader's ISR if the version is current; the leader needs no more than a session."""
        known, request = self.image.partitions.get(ask.partition), ask.request
        assert known is not None, ask
        error = ErrorCode.NONE
        if not self._is_open(request.leader, ask.broker_epoch):
            error = ErrorCode.STALE_BROKER_EPOCH
        else:
            epoch = PartitionEpoch(request.partition_epoch + 1)
            following = attrs.evolve(known, isr=request.members, partition_epoch=epoch)
            try:
                events = self.nodes.write_state(self.image.topics[ask.partition], following)
            except ZnodeRefusedError:
                # An answer may have been lost: what stands there already is what the leader wants (ReplicationUtils).
                is_done = (known.isr, known.leader, known.leader_epoch) == (
                    request.members,
                    request.leader,
                    request.leader_epoch,
                )
                error = ErrorCode.NONE if is_done else ErrorCode.INVALID_UPDATE_VERSION
            else:
                known = following
                self._write(PartitionRecord(ask.partition, known))
                self._notify((*events, *self.nodes.note_isr_change(request.leader)), out)
        out.send(sender, AlterPartitionResponse(ask.partition, request, Altered(error, known)))

    def _notify(self, events: tuple[WatchedEvent, ...], out: Outbox) -> None:
        """Notify the brokers whose watches have fired."""
        for each in events:
            out.send(Address(NodeId(self.nodes.brokers[each.session])), WatchNotification(each.path))
