"""A controller at its desk: a real ZooKeeper, a term of office, and brokers that only note what they are told."""

from __future__ import annotations

from broker.ids import BrokerEpoch, BrokerId, LeaderEpoch
from broker.units import TimeMs
from replication.roles.messages import (
    CONTROLLER,
    Address,
    AlterPartition,
    BrokerRegistration,
    BrokerRegistrationResponse,
    CreateTopic,
    Message,
    NodeId,
)
from replication.roles.outbox import Outbox
from replication.roles.settings import RoleSettings
from replication.rules.fencing import StopProof
from replication.rules.partition import AlterPartitionRequest, IsrMember, PartitionState
from replication.rules.settings import PartitionSettings
from replication.rules.switches import rules_of
from replication.zookeeper import ZooKeeperRole
from replication.zookeeper.kafka_controller import KafkaController
from replication.zookeeper.messages import (
    CloseSession,
    ControlledShutdown,
    GetClusterState,
    GetClusterStateResponse,
    LeaderAndIsr,
    RegisterController,
    RegisterControllerResponse,
    StopReplica,
    UpdatePartitionStateResponse,
    WatchNotification,
)

BOSS = BrokerId(9)
"""The broker that controls and has no replica."""

_NOW = TimeMs(0)


class Desk:
    """Brokers 0 to 3 and the controller's 9 are in session; partition 0 is on 0, 1 and 2, led by 0."""

    def __init__(self, *, unclean: bool = False) -> None:
        settings = PartitionSettings(rules=rules_of("2.8"), min_isr=1, unclean_election=unclean)
        self.zookeeper = ZooKeeperRole(RoleSettings(settings=settings, has_zookeeper=True))
        self.told: dict[int, list[Message]] = {}
        self.epochs: dict[int, BrokerEpoch] = {}
        self.settings = settings
        for broker in (BOSS, 0, 1, 2, 3):
            self.come(broker)
        self.begin_term()
        self.give(CreateTopic(0, tuple(map(BrokerId, (0, 1, 2)))))

    def begin_term(self) -> None:
        """Let the controller be elected, and read."""
        told = self._ask(RegisterController(BOSS, self.epochs[BOSS]), BOSS)[-1]
        assert isinstance(told, RegisterControllerResponse)
        self.kafka_controller = KafkaController(BOSS, told.controller_epoch, self.settings)
        self.read()

    def come(self, broker: int) -> None:
        """Begin a session of a broker."""
        told = self._ask(BrokerRegistration(BrokerId(broker), f"{broker}", StopProof()), broker)[-1]
        assert isinstance(told, BrokerRegistrationResponse)
        assert told.epoch is not None
        self.epochs[broker] = told.epoch

    def go(self, *brokers: int) -> None:
        """End the sessions of brokers; the controller reads when all have ended."""
        for broker in brokers:
            self._ask(CloseSession(BrokerId(broker), self.epochs[broker]), broker)

    def read(self) -> None:
        """Let the controller read everything."""
        self._work(self._ask(GetClusterState(BOSS, self.epochs[BOSS]), BOSS))

    def give(self, order: Message) -> None:
        """Let an operator order something of ZooKeeper, and the controller read of it."""
        self._work(self._ask(order, -1))
        self.read()

    def wants_to_stop(self, broker: int) -> None:
        """Let a broker ask to stop."""
        out = Outbox()
        shutdown = ControlledShutdown(BrokerId(broker), self.epochs[broker])
        self.kafka_controller.handle(shutdown, BrokerId(broker), out)
        self._deliver(out)

    def write_isr(self, *isr: int) -> None:
        """Let the leader write its ISR."""
        state = self.state
        members = tuple(IsrMember(BrokerId(broker)) for broker in isr)
        request = AlterPartitionRequest(
            leader=state.leader, leader_epoch=state.leader_epoch, partition_epoch=state.partition_epoch, isr=members
        )
        self._ask(AlterPartition(0, 1, request, self.epochs[state.leader]), state.leader)
        self.read()

    @property
    def state(self) -> PartitionState:
        """Partition 0 in ZooKeeper."""
        return self.zookeeper.image.partitions[0]

    @property
    def led(self) -> tuple[int, int, tuple[int, ...]]:
        """Leader, leader epoch and ISR of partition 0."""
        return self.state.leader, self.state.leader_epoch, self.state.isr

    @property
    def offline(self) -> set[int]:
        """The brokers whose replica of partition 0 the controller has taken offline."""
        return {broker for partition, broker in self.kafka_controller._offline if partition == 0}

    def orders(self, broker: int) -> list[tuple[int, int]]:
        """Return leader and leader epoch of each order a broker was given since this was asked last."""
        told = [each for each in self.told.pop(broker, []) if isinstance(each, LeaderAndIsr)]
        return [(each.state.leader, each.state.leader_epoch) for each in told]

    def stops(self, broker: int) -> list[tuple[bool, LeaderEpoch]]:
        """Return whether each stop a broker was told since this was asked last deletes, and its leader epoch."""
        told = [each for each in self.told.pop(broker, []) if isinstance(each, StopReplica)]
        return [(each.deletes, each.leader_epoch) for each in told]

    def _ask(self, message: Message, sender: int) -> list[Message]:
        """Return what ZooKeeper answers and notifies the controller of."""
        out = Outbox()
        self.zookeeper.handle(message, Address(NodeId(sender)), _NOW, out)
        return [each for address, each in out.sent if address.node == sender or isinstance(each, WatchNotification)]

    def _work(self, told: list[Message]) -> None:
        for message in told:
            out = Outbox()
            if isinstance(message, GetClusterStateResponse | UpdatePartitionStateResponse):
                self.kafka_controller.handle(message, BOSS, out)
            self._deliver(out)

    def _deliver(self, out: Outbox) -> None:
        for address, message in out.sent:
            if address.node == CONTROLLER:
                self._work(self._ask(message, BOSS))
            else:
                self.told.setdefault(address.node, []).append(message)
