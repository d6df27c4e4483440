"""Keep Kafka's znodes: their paths, their contents, and how brokers and the controller write them.

Constraints: the version of a partition's state is its partition epoch; the version of /controller_epoch is the
controller epoch; a broker's epoch is the transaction that created its znode (KIP-380).

Source: Kafka zk ZkData and KafkaZkClient, 2.8; ReplicationUtils for the notification of ISR changes.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from broker.ids import NO_LEADER, BrokerEpoch, BrokerId
from broker.zookeeper import NodeKind, Session, WatchedEvent, ZnodeCode, ZnodeRefusedError, ZnodeTree
from replication.roles.messages import CreateTopic
from replication.rules.partition import PartitionState

IDS: Final = "/brokers/ids"
TOPICS: Final = "/brokers/topics"
CONTROLLER_NODE: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"
ISR_CHANGES: Final = "/isr_change_notification"

Held: TypeAlias = CreateTopic | PartitionState | BrokerId | int
"""The data of a znode: a topic's replicas, a partition's state, the controller's id, or the controller epoch."""


class KafkaZnodes:
    """Hold the tree of Kafka's znodes, and the broker of each session."""

    def __init__(self) -> None:
        self.tree: ZnodeTree[Held] = ZnodeTree()
        for path in (IDS, TOPICS, ISR_CHANGES):
            self.tree.make_way(path)
        self.tree.create(CONTROLLER_EPOCH, 0)
        self.brokers: dict[Session, BrokerId] = {}
        self._sessions: dict[BrokerId, Session] = {}

    # Brokers.

    def register(self, broker: BrokerId) -> tuple[BrokerEpoch, tuple[WatchedEvent, ...]]:
        """Open a session, create the broker's znode and return its epoch; raise NODE_EXISTS if it exists."""
        session = Session(f"{broker}-{self.tree.transaction}")
        self.tree.open(session)
        made = self.tree.create(f"{IDS}/{broker}", broker, NodeKind.EPHEMERAL, session)
        self.brokers[session] = broker
        self._sessions[broker] = session
        return BrokerEpoch(self.tree.get(made.path).stat.created), made.events

    def end_session(self, broker: BrokerId) -> tuple[WatchedEvent, ...]:
        """End a broker's session; return the watches that fire."""
        session = self._sessions.pop(broker)
        del self.brokers[session]
        return self.tree.close(session)

    def take_control(self, broker: BrokerId) -> tuple[WatchedEvent, ...]:
        """Create the znode /controller under the next controller epoch unless it exists; watch it anyway."""
        session = self._sessions[broker]
        events: tuple[WatchedEvent, ...] = ()
        try:
            events = self.tree.create(CONTROLLER_NODE, broker, NodeKind.EPHEMERAL, session).events
        except ZnodeRefusedError as refused:
            if refused.code is not ZnodeCode.NODE_EXISTS:
                raise
        else:
            events += self.tree.write(CONTROLLER_EPOCH, self.controller_epoch + 1)
        self.tree.exists(CONTROLLER_NODE, session)
        return events

    @property
    def controller(self) -> BrokerId:
        """Return the broker in the znode /controller, -1 if there is none."""
        if self.tree.exists(CONTROLLER_NODE) is None:
            return NO_LEADER
        holder = self.tree.get(CONTROLLER_NODE).data
        assert isinstance(holder, int), holder
        return BrokerId(holder)

    @property
    def controller_epoch(self) -> int:
        """Return the controller epoch: the number of controllers elected so far."""
        return self.tree.get(CONTROLLER_EPOCH).stat.version

    def drop_controller(self) -> tuple[WatchedEvent, ...]:
        """Remove the znode /controller, if it exists, as an operator does to force an election."""
        return () if self.controller == NO_LEADER else self.tree.delete(CONTROLLER_NODE)

    # Topics.

    def make_topic(self, order: CreateTopic) -> tuple[WatchedEvent, ...]:
        """Write a new topic's replicas; an existing topic stays as it is."""
        path = f"{TOPICS}/{order.topic}"
        return () if self.tree.exists(path) is not None else self.tree.create(path, order).events

    def read_topics(self, controller: BrokerId) -> dict[int, CreateTopic]:
        """Return the topics without a partition state, remove the ISR change notifications, and set the watches."""
        tree, session = self.tree, self._sessions[controller]
        for note in tree.children(ISR_CHANGES):
            tree.delete(f"{ISR_CHANGES}/{note}")
        for path in (IDS, TOPICS, ISR_CHANGES):
            tree.children(path, session)
        unmade = {}
        for topic in tree.children(TOPICS):
            order = tree.get(f"{TOPICS}/{topic}").data
            assert isinstance(order, CreateTopic), order
            if tree.exists(_state_path(topic)) is None:
                unmade[order.partition] = order
        return unmade

    def topic_of(self, partition: int) -> str | None:
        """Return the name of the topic of a partition."""
        for topic in self.tree.children(TOPICS):
            order = self.tree.get(f"{TOPICS}/{topic}").data
            if isinstance(order, CreateTopic) and order.partition == partition:
                return topic
        return None

    def write_state(self, topic: str, state: PartitionState) -> tuple[WatchedEvent, ...]:
        """Write a partition's state if its version is the one before; raise NO_NODE or BAD_VERSION."""
        path = _state_path(topic)
        if state.partition_epoch > 0:
            return self.tree.write(path, state, state.partition_epoch - 1)
        self.tree.check(f"{TOPICS}/{topic}", 0)
        events = self.tree.make_way(path.rpartition("/")[0])
        return events + self.tree.create(path, state).events

    def note_isr_change(self, broker: BrokerId) -> tuple[WatchedEvent, ...]:
        """Create a znode under /isr_change_notification for a leader that has written its ISR."""
        return self.tree.create(
            f"{ISR_CHANGES}/isr_change_", kind=NodeKind.SEQUENTIAL, session=self._sessions[broker]
        ).events


def _state_path(topic: str) -> str:
    return f"{TOPICS}/{topic}/partitions/0/state"
