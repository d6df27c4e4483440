"""ZooKeeper as one process: nodes with versions, nodes that go with their session, watches that tell once.
 It decides who is alive (an ephemeral node under /brokers/ids), who is controller (the ephemeral node /controller),
and whether a write comes from a state that is still current (versions). It knows nothing of replication: what is to
become of a partition it is told.

Goals, most important first
1. A write on an old version changes nothing.
2. A session that has ended can write nothing, and its nodes are gone.
3. Who watches is told of the next change, later, once, and has to read what it is.

Constraints: the version of a partition's node is its partition epoch; a broker's epoch is the transaction that made
its node. A controller writes only under the controller epoch of its election (KAFKA-6082).

How: it stands where the KRaft controller stands, and keeps the same log of what was changed, for whoever looks on.

Worked example: broker 1 is silent for a session: its node goes, and the controller, which watched, is notified.

Left out: the ensemble behind it, other nodes, quotas.

Source: Kafka KafkaZkClient and ZkPartitionStateStore, 2.8; Apache ZooKeeper Programmer's Guide.
"""

from __future__ import annotations

import attrs

from broker.error_codes import ErrorCode
from broker.errors import UsageError
from broker.ids import NO_LEADER, BrokerEpoch, BrokerId
from broker.registration import BrokerState
from broker.units import TimeMs
from replication.alter_partition import Altered
from replication.fencing import is_session_valid
from replication.partition import BrokerStatus, PartitionEpoch
from replication.roles.controller import ControllerRole, Session
from replication.roles.messages import (
    Address,
    AskIsr,
    Beat,
    BeatTold,
    BrokerRecord,
    Create,
    Delete,
    Elect,
    IsrTold,
    Message,
    NodeId,
    PartitionRecord,
    PartitionRemoved,
    Reassign,
    Register,
    Registered,
    SessionsDue,
)
from replication.roles.outbox import Outbox
from replication.roles.settings import RoleSettings
from replication.zookeeper.messages import (
    ControlTold,
    Notified,
    ReadState,
    StateRead,
    StateWritten,
    TakeControl,
    WriteState,
)

IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
CONTROLLER_NODE = "/controller"


class ZooKeeperRole(ControllerRole):
    """ZooKeeper in a controller's place. `controller` is whose node /controller is, -1 for nobody's."""

    def __init__(self, settings: RoleSettings) -> None:
        super().__init__(settings)
        rules = settings.terms.rules
        if rules.elr or rules.isr_shrink_keeps_leader_epoch:
            raise UsageError(
                "with ZooKeeper there is no ELR, and each shrink begins a leader epoch: take rules before 3.6"
            )
        self.controller = NO_LEADER
        self.controller_epoch = 0
        self._watchers: dict[str, dict[BrokerId, None]] = {IDS: {}, TOPICS: {}, CONTROLLER_NODE: {}}

    def start(self, now_ms: TimeMs, out: Outbox) -> None:
        """Begin; later, let the controller's connection break, so that another one is elected."""
        if self.controller != NO_LEADER:
            self._drop_controller(out)
        for session in self._sessions.values():
            session.heard_at_ms = now_ms
        out.wake(self.settings.session_check_ms, SessionsDue())

    def handle(self, message: Message, sender: Address, now_ms: TimeMs, out: Outbox) -> None:
        """Take one message."""
        if isinstance(message, Beat):
            self._on_ping(message, sender, now_ms, out)
        elif isinstance(message, AskIsr):
            self._on_isr_write(message, sender, out)
        elif isinstance(message, WriteState):
            self._on_write(message, sender, out)
        elif isinstance(message, ReadState):
            self._on_read(message, sender, out)
        elif isinstance(message, TakeControl):
            self._on_take_control(message, sender, out)
        elif isinstance(message, Register):
            self._on_open_session(message, sender, now_ms, out)
        elif isinstance(message, SessionsDue):
            self._expire_sessions(now_ms, out)
            out.wake(self.settings.session_check_ms, SessionsDue())
        elif isinstance(message, Create):
            self._create(message)
            self._fire(TOPICS, out)
        elif isinstance(message, Delete):
            if message.partition in self.image.partitions:
                self._write(PartitionRemoved(message.partition))
                self._fire(TOPICS, out)
        elif isinstance(message, Elect | Reassign):
            if self.controller != NO_LEADER:
                out.send(Address(NodeId(self.controller)), message)
        else:
            raise UsageError(f"ZooKeeper takes no {type(message).__name__}")

    # Sessions.

    def _on_open_session(self, request: Register, sender: Address, now_ms: TimeMs, out: Outbox) -> None:
        broker, status = request.broker, self.image.brokers.get(request.broker)
        if status is not None and not status.fenced:
            # The node of a former session is still there: it has to end first.
            out.send(sender, Registered(None))
            return
        epoch = BrokerEpoch(len(self.log))
        self._sessions[broker] = Session(now_ms)
        self._write(BrokerRecord(broker, BrokerStatus(epoch=epoch)))
        out.send(sender, Registered(epoch))
        self._fire(IDS, out)

    def _on_ping(self, beat: Beat, sender: Address, now_ms: TimeMs, out: Outbox) -> None:
        if not self._is_open(beat.broker, beat.epoch):
            out.send(sender, BeatTold(ErrorCode.STALE_BROKER_EPOCH, BrokerState.UNREGISTERED))
            return
        self._sessions[beat.broker].heard_at_ms = now_ms
        if beat.heartbeat.want_shutdown:
            self._end_session(beat.broker, out)
            out.send(sender, BeatTold(ErrorCode.NONE, BrokerState.SHUTDOWN_NOW))
            return
        out.send(sender, BeatTold(ErrorCode.NONE, BrokerState.UNFENCED))

    def _expire_sessions(self, now_ms: TimeMs, out: Outbox) -> None:
        for broker, status in sorted(self.image.brokers.items()):
            heard_at_ms = self._sessions[broker].heard_at_ms
            if not status.fenced and not is_session_valid(heard_at_ms, now_ms, self.settings.session_ms):
                self._end_session(broker, out)

    def _end_session(self, broker: BrokerId, out: Outbox) -> None:
        """Remove every node of a session."""
        self._write(BrokerRecord(broker, attrs.evolve(self.image.brokers[broker], fenced=True)))
        for watchers in self._watchers.values():
            watchers.pop(broker, None)
        if self.controller == broker:
            self._drop_controller(out)
        self._fire(IDS, out)

    def _is_open(self, broker: BrokerId, epoch: BrokerEpoch) -> bool:
        status = self.image.brokers.get(broker)
        return status is not None and not status.fenced and status.epoch == epoch

    # The controller.

    def _on_take_control(self, request: TakeControl, sender: Address, out: Outbox) -> None:
        if not self._is_open(request.broker, request.epoch):
            return
        if self.controller == NO_LEADER:
            self.controller = request.broker
            self.controller_epoch += 1
        else:
            self._watchers[CONTROLLER_NODE][request.broker] = None
        out.send(sender, ControlTold(self.controller, self.controller_epoch))

    def _on_read(self, request: ReadState, sender: Address, out: Outbox) -> None:
        if self._is_open(request.broker, request.epoch):
            self._watchers[IDS][request.broker] = None
            self._watchers[TOPICS][request.broker] = None
            image = self.image
            out.send(sender, StateRead(image.brokers, dict(image.partitions), dict(image.topics), image.offset))

    def _drop_controller(self, out: Outbox) -> None:
        self.controller = NO_LEADER
        self._fire(CONTROLLER_NODE, out)

    def _on_write(self, request: WriteState, sender: Address, out: Outbox) -> None:
        known = self.image.partitions.get(request.partition)
        is_current = request.controller_epoch == self.controller_epoch and request.broker == self.controller
        is_written = known is not None and is_current and request.state.partition_epoch == known.partition_epoch + 1
        if is_written:
            self._write(PartitionRecord(request.partition, request.state))
        state = request.state if known is None or is_written else known
        out.send(sender, StateWritten(request.partition, state, is_written))

    def _on_isr_write(self, ask: AskIsr, sender: Address, out: Outbox) -> None:
        """Let a leader write its ISR, if it knows the version of the node; nothing but its session is asked for."""
        known, request = self.image.partitions[ask.partition], ask.request
        error = ErrorCode.NONE
        if not self._is_open(request.leader, ask.broker_epoch):
            error = ErrorCode.STALE_BROKER_EPOCH
        elif request.partition_epoch != known.partition_epoch:
            error = ErrorCode.INVALID_UPDATE_VERSION
        else:
            known = attrs.evolve(known, isr=request.members, partition_epoch=PartitionEpoch(known.partition_epoch + 1))
            self._write(PartitionRecord(ask.partition, known))
            self._fire(TOPICS, out)
        out.send(sender, IsrTold(ask.partition, request, Altered(error, known)))

    def _fire(self, path: str, out: Outbox) -> None:
        """Tell everybody who watches a path, each once."""
        watchers = self._watchers[path]
        for broker in sorted(watchers):
            out.send(Address(NodeId(broker)), Notified(path))
        watchers.clear()
