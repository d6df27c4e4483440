"""Model ZooKeeper as one process: it keeps Kafka's znodes, expires sessions and fires watches.

Constraints: the states of each broker's znode are the table `ZOOKEEPER_TRANSITIONS` of `broker.registration`. The
version of a partition's state is its partition epoch; the version of /controller_epoch is the controller epoch; a
broker's epoch is the transaction that created its znode (KIP-380).

Source: Kafka zk ZkData, KafkaZkClient, ZkPartitionStateStore and ReplicationUtils, 2.8; Apache ZooKeeper ClientCnxn,
3.5, and Programmer's Guide.
"""

from __future__ import annotations

from typing import Final, TypeAlias

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
from broker.zookeeper import NodeKind, Session, WatchedEvent, ZnodeCode, ZnodeRefusedError, ZnodeTree
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
from replication.rules.partition import BrokerStatus, PartitionEpoch, PartitionState
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

IDS: Final = "/brokers/ids"
TOPICS: Final = "/brokers/topics"
CONTROLLER_NODE: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"
ISR_CHANGES: Final = "/isr_change_notification"

Held: TypeAlias = CreateTopic | PartitionState | BrokerId | int
"""The data of a znode: a topic's replicas, a partition's state, the controller's id, or the controller epoch."""


class ZooKeeperRole(ControllerRole):
    """Model ZooKeeper in a controller's place; `broker_nodes` holds the state of each broker's ephemeral znode."""

    def __init__(self, role_settings: RoleSettings) -> None:
        super().__init__(role_settings)
        self.tree: ZnodeTree[Held] = ZnodeTree()
        for path in (IDS, TOPICS, ISR_CHANGES):
            self.tree.make_way(path)
        self.tree.create(CONTROLLER_EPOCH, 0)
        self.broker_nodes: dict[BrokerId, ZookeeperState] = {}
        self._brokers: dict[Session, BrokerId] = {}
        self._session_of: dict[BrokerId, Session] = {}
        self._heard_at_ms: dict[BrokerId, TimeMs] = {}

    def start(self, now_ms: TimeMs, out: Outbox) -> None:
        """Start; on later calls remove the znode /controller as an operator does, to have a controller elected."""
        if self.controller != NO_LEADER:
            self._notify(self.tree.delete(CONTROLLER_NODE), out)
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
            path = f"{TOPICS}/{order.topic}"
            if self.tree.exists(path) is None:
                self._notify(self.tree.create(path, order).events, out)
        elif isinstance(message, ElectLeaders | AlterPartitionReassignments):
            if self.controller != NO_LEADER:
                out.send(Address(NodeId(self.controller)), message)
        else:
            raise UsageError(f"ZooKeeper takes no {type(message).__name__}")

    # Sessions.

    def _on_open_session(self, request: BrokerRegistration, sender: Address, now_ms: TimeMs, out: Outbox) -> None:
        broker = request.broker
        if (self._node_of(broker), ZookeeperInput.CREATE_NODE) not in ZOOKEEPER_TRANSITIONS:
            # The node of a former session is still there: it has to end first.
            out.send(sender, BrokerRegistrationResponse(None))
            return
        session = Session(f"{broker}-{self.tree.transaction}")
        self.tree.open(session)
        made = self.tree.create(f"{IDS}/{broker}", broker, NodeKind.EPHEMERAL, session)
        epoch = BrokerEpoch(self.tree.get(made.path).stat.created)
        self._brokers[session], self._session_of[broker] = broker, session
        self._step(broker, ZookeeperInput.CREATE_NODE)
        self._heard_at_ms[broker] = now_ms
        self._write(BrokerRecord(broker, BrokerStatus(epoch=epoch, rack=request.rack)))
        self._notify(made.events, out)
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
        session = self._session_of.pop(broker)
        del self._brokers[session]
        self._notify(self.tree.close(session), out)

    def _is_open(self, broker: BrokerId, epoch: BrokerEpoch) -> bool:
        status = self.image.brokers.get(broker)
        return status is not None and not status.fenced and status.epoch == epoch

    def _node_of(self, broker: BrokerId) -> ZookeeperState:
        return self.broker_nodes.get(broker, ZookeeperState.ABSENT)

    def _step(self, broker: BrokerId, event: ZookeeperInput) -> None:
        self.broker_nodes[broker] = zookeeper_step(self._node_of(broker), event)

    # The controller.

    @property
    def controller(self) -> BrokerId:
        """Return the broker in the znode /controller, -1 if there is none."""
        if self.tree.exists(CONTROLLER_NODE) is None:
            return NO_LEADER
        holder = self.tree.get(CONTROLLER_NODE).data
        assert isinstance(holder, int), holder
        return BrokerId(holder)

    def _controller_now(self) -> RegisterControllerResponse:
        return RegisterControllerResponse(self.controller, self.tree.get(CONTROLLER_EPOCH).stat.version)

    def _on_take_control(self, request: RegisterController, sender: Address, out: Outbox) -> None:
        """Create the znode /controller under the next controller epoch unless it exists; watch it anyway."""
        if not self._is_open(request.broker, request.epoch):
            return
        session = self._session_of[request.broker]
        try:
            events = self.tree.create(CONTROLLER_NODE, request.broker, NodeKind.EPHEMERAL, session).events
        except ZnodeRefusedError as refused:
            if refused.code is not ZnodeCode.NODE_EXISTS:
                raise
        else:
            self._notify(
                (*events, *self.tree.write(CONTROLLER_EPOCH, self._controller_now().controller_epoch + 1)), out
            )
        self.tree.exists(CONTROLLER_NODE, session)
        out.send(sender, self._controller_now())

    def _on_read(self, request: GetClusterState, sender: Address, out: Outbox) -> None:
        """Answer with all znodes, remove the ISR change notifications, and set the watches."""
        if not self._is_open(request.broker, request.epoch):
            return
        tree, image = self.tree, self.image
        for note in tree.children(ISR_CHANGES):
            tree.delete(f"{ISR_CHANGES}/{note}")
        for path in (IDS, TOPICS, ISR_CHANGES):
            tree.children(path, self._session_of[request.broker])
        read = GetClusterStateResponse(
            brokers=image.brokers,
            partitions=dict(image.partitions),
            topics=dict(image.topics),
            unmade={
                order.partition: order for order in self._topics() if tree.exists(_state_path(order.topic)) is None
            },
            offset=image.offset,
            transaction=tree.transaction,
        )
        out.send(sender, read)

    def _topics(self) -> list[CreateTopic]:
        orders = [self.tree.get(f"{TOPICS}/{topic}").data for topic in self.tree.children(TOPICS)]
        return [order for order in orders if isinstance(order, CreateTopic)]

    def _on_write(self, request: UpdatePartitionState, sender: Address, out: Outbox) -> None:
        partition, state = request.partition, request.state
        if self._controller_now() != RegisterControllerResponse(request.broker, request.controller_epoch):
            # As by a ControllerMovedException it learns that it controls no more, though it may have missed the watch.
            out.send(sender, self._controller_now())
            return
        known = self.image.partitions.get(partition)
        order = next((order for order in self._topics() if order.partition == partition), None)
        is_written = order is not None
        if order is not None:
            try:
                events = self._write_state(order.topic, state)
            except ZnodeRefusedError:
                is_written = False
            else:
                self._write(PartitionRecord(partition, state, order.topic))
                self._notify(events, out)
        out.send(
            sender, UpdatePartitionStateResponse(partition, state if known is None or is_written else known, is_written)
        )

    def _write_state(self, topic: str, state: PartitionState) -> tuple[WatchedEvent, ...]:
        """Write a partition's state if its version is the one before; raise NO_NODE or BAD_VERSION."""
        path = _state_path(topic)
        if state.partition_epoch > 0:
            return self.tree.write(path, state, state.partition_epoch - 1)
        self.tree.check(f"{TOPICS}/{topic}", 0)
        return (*self.tree.make_way(path.rpartition("/")[0]), *self.tree.create(path, state).events)

    def _on_isr_write(self, ask: AlterPartition, sender: Address, out: Outbox) -> None:
        """Write a leader's ISR if the version is current; the leader needs no more than a session."""
        known, request = self.image.partitions[ask.partition], ask.request
        error = ErrorCode.NONE
        if not self._is_open(request.leader, ask.broker_epoch):
            error = ErrorCode.STALE_BROKER_EPOCH
        else:
            epoch = PartitionEpoch(request.partition_epoch + 1)
            following = attrs.evolve(known, isr=request.members, partition_epoch=epoch)
            try:
                events = self._write_state(self.image.topics[ask.partition], following)
            except ZnodeRefusedError:
                # An answer may have been lost: what stands there already is what the leader wants (ReplicationUtils).
                wanted = request.members, request.leader, request.leader_epoch
                is_done = (known.isr, known.leader, known.leader_epoch) == wanted
                error = ErrorCode.NONE if is_done else ErrorCode.INVALID_UPDATE_VERSION
            else:
                known = following
                self._write(PartitionRecord(ask.partition, known))
                session = self._session_of[request.leader]
                noted = self.tree.create(f"{ISR_CHANGES}/isr_change_", kind=NodeKind.SEQUENTIAL, session=session)
                self._notify((*events, *noted.events), out)
        out.send(sender, AlterPartitionResponse(ask.partition, request, Altered(error, known)))

    def _notify(self, events: tuple[WatchedEvent, ...], out: Outbox) -> None:
        """Notify the brokers whose watches have fired."""
        for each in events:
            out.send(Address(NodeId(self._brokers[each.session])), WatchNotification(each.path))


def _state_path(topic: str) -> str:
    return f"{TOPICS}/{topic}/partitions/0/state"
