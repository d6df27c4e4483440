"""Run a whole cluster in one thread: nodes, controller and clients on a virtual clock.

A response reaches only the process run that asked; a paused node handles its messages when it resumes; timers die with
the process. The clock moves only here.

Source: ours; discrete-event simulation.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import chain
from typing import Final, Protocol

import attrs

from broker.entropy import SplitMix64, derive
from broker.ids import BrokerId
from broker.units import MIB, TimeMs
from replication.roles.controller import ControllerRole
from replication.roles.hosted import HostedRoleMaker
from replication.roles.messages import (
    ANY_INCARNATION,
    CLIENT_FIRST,
    CONTROLLER,
    NOBODY,
    Address,
    AlterPartition,
    CreateTopic,
    CreateTopics,
    HostedMessage,
    Incarnation,
    Message,
    NodeId,
    PartitionRemoved,
    Produce,
)
from replication.roles.outbox import Outbox
from replication.roles.replica_log import ReplicaLog
from replication.simulation.clients import Consumer, Producer
from replication.simulation.former_controller import FormerController
from replication.simulation.history import History, Trace
from replication.simulation.network import Network
from replication.simulation.node import Node, with_small_segments
from replication.simulation.options import Options
from replication.zookeeper import ZooKeeperRole

_NETWORK_STREAM: Final = 3
_CLIENT_STREAM: Final = 4
DISK_STREAM: Final = 5
_SECOND_MS: Final = 1_000
"""How often in ms the digest is updated and the events are counted anew."""
_EVENTS_PER_SECOND: Final = 50_000
_EVENTS_PER_WRITE: Final = 200
"""The most events of a simulated second, and those for each write in it: a hundred times what runs have."""
HEAL_SECONDS: Final = 20
"""The events of a whole heal are at most those of so many seconds: a cluster without faults has little to do."""
CREATE_MS: Final = 1_000
"""The time in ms at which partitions are created: by then the brokers are unfenced, unless the network is bad."""

Action = Callable[[], None]
Watch = Callable[["Cluster", NodeId, Message, Outbox], None]
_READ_ONCE: Final = frozenset({AlterPartition, Produce})
_NOTHING_READ: Final = (-1, -1)
_ACTION: Final = HostedMessage()
"""Stands in the heap for an action."""
_LAST: Final = 1 << 62
"""The number of the entry at which the loop stops: above all others."""
_Entry = tuple[int, int, Address, Address, Message]


class NoProgressError(RuntimeError):
    """Report that a cluster handles the same messages over and over, and time stands almost still."""


class VirtualClock:
    """Hold the virtual time, which the cluster moves at every event."""

    __slots__ = ("at_ms",)

    def __init__(self) -> None:
        self.at_ms: int = 0

    def now_ms(self) -> TimeMs:
        """Return the virtual time in ms."""
        return TimeMs(self.at_ms)


class Client(Protocol):
    """Define a process outside the brokers that sends requests and takes responses."""

    def begin(self, out: Outbox) -> None:
        """Start."""
        ...

    def handle(self, message: Message, now_ms: TimeMs, out: Outbox) -> None:
        """Take a response or a wake-up."""
        ...


class NoClient:
    """Stand at the address of a client that has disconnected: what arrives there is lost."""

    def begin(self, out: Outbox) -> None:
        """Do nothing."""

    def handle(self, message: Message, now_ms: TimeMs, out: Outbox) -> None:
        """Drop a message."""


class Cluster:
    """Hold the nodes, the controller, the clients, the network and the events of one run."""

    def __init__(self, options: Options, trace: Trace) -> None:
        self.options = options
        self.trace = trace
        self.clock = VirtualClock()
        self.history = History()
        network = options.network
        if options.role_settings.has_zookeeper:
            # LeaderAndIsr that came again after StopReplica would make a deleted replica anew; TCP repeats nothing.
            network = attrs.evolve(network, duplicates=0)
        self.network = Network(network, SplitMix64(derive(options.seed, _NETWORK_STREAM)))
        self.controller = (ZooKeeperRole if options.role_settings.has_zookeeper else ControllerRole)(
            options.role_settings
        )
        self.controller_address = Address(CONTROLLER, Incarnation(0))
        self.is_without_controller = False
        """Whether nobody is controller: what is sent to it is lost."""
        self.controller_started_ms = 0
        self.former: FormerController | None = None
        """The controller before this one, if some brokers still ask it."""
        self.nodes = {
            broker: Node(broker, place % options.racks, options.role_settings, self.clock, options.wall_clock_ms)
            for place, broker in enumerate(options.ids)
        }
        for node in self.nodes.values():
            node.log_line = self._log_line
            if options.segment_bytes < MIB:
                node.config = with_small_segments(node.config, options.segment_bytes)
        self._machines: dict[int, Node] = {int(broker): node for broker, node in self.nodes.items()}
        """The nodes by the number that messages name as their receiver."""
        self.clients: dict[NodeId, Client] = {**_clients(options, self.history)}
        self.watches: list[Watch] = []
        """Called after every event."""
        self.controller_watches: list[Watch] = []
        """Called after the controller's events, before the others."""
        self._heap: list[_Entry] = []
        self._out = Outbox()
        """The outbox of the event being handled; empty between events."""
        self._stop_ms = 0
        """Where the loop stops: at the entry `_LAST` of this time."""
        self._wall_clock_ms = options.wall_clock_ms
        self._asked = 0
        self._actions: dict[int, Action] = {}
        """The scheduled actions, by the number of their heap entry."""
        self._standing: dict[BrokerId, list[tuple[Address, Address, Message]]] = {}
        """The messages that have arrived at paused brokers."""
        self._client_addresses: dict[NodeId, Address] = {}
        self._free_nodes: list[NodeId] = []
        """The addresses of clients that have disconnected."""
        self._newest: dict[tuple[NodeId, Incarnation, type, int], tuple[int, int]] = {}
        writes_per_second = options.producers * _SECOND_MS // options.produce_ms
        self.events_per_second_max = _EVENTS_PER_SECOND + _EVENTS_PER_WRITE * writes_per_second

    @property
    def now_ms(self) -> TimeMs:
        """Return the virtual time in ms since the start; it moves in `run_until` only."""
        return TimeMs(self.clock.at_ms)

    @property
    def is_asked_apart(self) -> bool:
        """Return whether some brokers ask a former controller."""
        return self.former is not None

    @property
    def event_count(self) -> int:
        """Return the number of messages handled."""
        return self.trace.event_count

    @property
    def deleted(self) -> frozenset[int]:
        """Return the partitions whose topics were deleted. Cost: linear in the metadata log."""
        return frozenset(record.partition for record in self.controller.log if isinstance(record, PartitionRemoved))

    def _log_line(self, line: str) -> None:
        self.trace.line(self.now_ms, line)

    def host(self, make: HostedRoleMaker) -> None:
        """Let every broker run a further role; call before the cluster begins."""
        for node in self.nodes.values():
            node.hosted_roles.append(make)

    def join(self, make: Callable[[NodeId], Client]) -> NodeId:
        """Add the client that `make` creates for a new address; return the address. Call before the cluster begins."""
        node = NodeId(CLIENT_FIRST + len(self.clients))
        self.clients[node] = make(node)
        return node

    def begin(self) -> None:
        """Start every process."""
        out = Outbox()
        self.controller.start(self.now_ms, out)
        self._post(self.controller_address, out)
        for broker in self.nodes:
            self.start_broker(broker)
        for client_node, client in self.clients.items():
            address = self._client_addresses[client_node] = Address(client_node, Incarnation(0))
            client.begin(out)
            self._post(address, out)
        self.at(CREATE_MS, self._create)

    def _create(self) -> None:
        """Create missing partitions and check again after CREATE_MS."""
        known = self.controller.image.partitions.keys() | self.deleted
        missing = [each for each in range(self.options.partition_count) if each not in known]
        orders = [CreateTopic(each, replicas_of(each, self.options), self._topic_of(each)) for each in missing]
        for order in [CreateTopics(tuple(orders))] if self.options.topics and orders else orders:
            self.deliver(CONTROLLER, order)
        if missing:
            self.at(self.now_ms + CREATE_MS, self._create)

    def _topic_of(self, partition: int) -> str:
        """Return the name that a partition is created with, such as "orders-0"; "" for one made from its number."""
        start = 0
        for name, count in self.options.topics:
            if partition < start + count:
                return f"{name}-{partition - start}"
            start += count
        return ""

    def start_broker(self, broker: BrokerId) -> None:
        """Start a broker that is down."""
        node = self.nodes[broker]
        role = node.start()
        out = Outbox()
        role.begin(out)
        self._post(node.address, out)

    def resume(self, broker: BrokerId) -> None:
        """Resume a paused broker and deliver the messages that have arrived meanwhile."""
        self.nodes[broker].is_paused = False
        for receiver, sender, message in self._standing.pop(broker, []):
            self._push(self.now_ms, receiver, sender, message)

    def fail_over(self) -> None:
        """Move to another controller: the metadata log stays, messages in flight to the former one are lost."""
        self.lose_controller()
        self.is_without_controller = False
        self.controller_started_ms = self.clock.at_ms
        out = Outbox()
        self.controller.start(self.now_ms, out)
        self._post(self.controller_address, out)

    def lose_controller(self) -> None:
        """Be without a controller until `fail_over`."""
        self.is_without_controller = True
        self.controller_address = Address(CONTROLLER, Incarnation(self.controller_address.incarnation + 1))

    def leader_log(self, partition: int) -> ReplicaLog | None:
        """Return the log of a partition's leader by the controller's metadata; None without a leader or its log."""
        state = self.controller.image.partitions.get(partition)
        return None if state is None or not state.has_leader else self.nodes[state.leader].logs.get(partition)

    def stop_writing(self) -> None:
        """Let producers finish their writes in flight, write to each partition once more with acks=all, and stop."""
        deleted = self.deleted
        for client in self.clients.values():
            if isinstance(client, Producer):
                client.stop(self.now_ms, deleted)

    @property
    def next_event_ms(self) -> TimeMs:
        """Return the time of the next event; a cluster that has begun always has one."""
        return TimeMs(self._heap[0][0])

    def connect(self, make: Callable[[NodeId], Client]) -> NodeId:
        """Add the client that `make` creates while the cluster runs; return its address, which may be one given up."""
        node = self._free_nodes.pop() if self._free_nodes else NodeId(CLIENT_FIRST + len(self.clients))
        self.clients[node] = make(node)
        self._client_addresses[node] = Address(node, Incarnation(0))
        return node

    def disconnect(self, node: NodeId) -> None:
        """Give up a client's address; what is on its way there is lost."""
        self.clients[node] = NoClient()
        self._free_nodes.append(node)

    def send(self, sender: NodeId, receiver: Address, message: Message) -> None:
        """Send a client's message over the network."""
        self._out.send(receiver, message)
        self._post(self._client_addresses[sender], self._out)

    def interrupt(self) -> None:
        """Let `advance` end with the events of the present millisecond."""
        self._stop_ms = self.clock.at_ms
        heappush(self._heap, (self._stop_ms, _LAST, NOBODY, NOBODY, _ACTION))

    def advance(self, end_ms: TimeMs) -> None:
        """Run all events up to and including `end_ms` as `run_until` does, or until `interrupt`."""
        second = self.clock.at_ms // _SECOND_MS
        self._play_until(end_ms)
        if end_ms // _SECOND_MS > second:
            self.trace.fold()

    def at(self, at_ms: int, action: Action) -> None:
        """Schedule an action at `at_ms`."""
        self._push(at_ms, NOBODY, NOBODY, _ACTION)
        self._actions[self._asked] = action

    def deliver(self, receiver: NodeId, message: Message) -> None:
        """Deliver a message to a node now, without the network."""
        self._push(self.now_ms, Address(receiver), NOBODY, message)

    def run_until(self, end_ms: TimeMs) -> None:
        """Run all events up to and including `end_ms`; raise NoProgressError if a second has far too many."""
        at_ms = self.clock.at_ms
        assert end_ms >= at_ms, (end_ms, at_ms)
        for until_ms in chain(range(at_ms + _SECOND_MS, end_ms, _SECOND_MS), (end_ms,)):
            self._play_until(until_ms)
            self.trace.fold()

    def _play_until(self, end_ms: int) -> None:
        heap, clock, pop, out, post = self._heap, self.clock, heappop, self._out, self._post
        hand_over, watches = self._hand_over, self.watches
        note, kinds = self.trace.events.append, self.trace.kinds
        # Stands behind all that happens at that time, so that no event has to ask whether there is another one.
        self._stop_ms = end_ms
        heappush(heap, (end_ms, _LAST, NOBODY, NOBODY, _ACTION))
        for _ in range(self.events_per_second_max):
            at_ms, number, receiver, sender, message = pop(heap)
            clock.at_ms = at_ms
            if receiver is NOBODY:
                if number < _LAST:
                    self._actions.pop(number)()
                elif at_ms == self._stop_ms:  # Else it is left of a call that was ended early.
                    return
                continue
            own = hand_over(receiver, sender, message)
            if own is None:
                continue
            node = own.node
            note(at_ms << 23 ^ node << 6 ^ kinds[type(message)])
            for watch in watches:
                watch(self, node, message, out)
            if out.sent or out.woken:
                post(own, out)
        repeated = ", ".join(self.trace.most_frequent())
        raise NoProgressError(f"{self.events_per_second_max:,} events in one simulated second, most of them {repeated}")

    def _push(self, at_ms: int, receiver: Address, sender: Address, message: Message) -> None:
        self._asked += 1
        heappush(self._heap, (at_ms, self._asked, receiver, sender, message))

    def _hand_over(self, receiver: Address, sender: Address, message: Message) -> Address | None:
        """Let the receiving process handle a message; return the address of its run, None if there is no such run."""
        at_ms = self.clock.at_ms
        # Asked in the order of how often it happens: this is where every event passes.
        if type(message) in _READ_ONCE and not self._is_newest(sender, message):
            return None
        if receiver.node < CONTROLLER:
            node = self._machines[receiver.node]
            role, own = node.role, node.address
            if role is None or (receiver is not own and receiver.incarnation not in (own.incarnation, ANY_INCARNATION)):
                return None
            if node.is_paused:
                self._standing.setdefault(node.broker, []).append((receiver, sender, message))
                return None
            role.handle(message, sender, TimeMs(self._wall_clock_ms + at_ms + node.clock_ahead_ms), self._out)
            return own
        if receiver.node == CONTROLLER:
            own = self.controller_address
            if self.is_without_controller or receiver.incarnation not in (own.incarnation, ANY_INCARNATION):
                return None
            if self.former is not None and self.former.takes(sender, message):
                self.former.handle(message, sender, TimeMs(at_ms), self._out)
                return own
            self.controller.handle(message, sender, TimeMs(at_ms), self._out)
            for watch in self.controller_watches:
                watch(self, CONTROLLER, message, self._out)
            return own
        self.clients[receiver.node].handle(message, TimeMs(at_ms), self._out)
        return self._client_addresses[receiver.node]

    def _is_newest(self, sender: Address, message: Message) -> bool:
        """Return whether a request that changes state is newer than those that arrived from its sender.

        A request is sent again over a new connection; what is left on the old one is never read, and nothing is read
        twice.
        """
        assert isinstance(message, (AlterPartition, Produce)), message
        way = (sender.node, sender.incarnation, type(message), message.partition)
        # Each time that a broker begins to lead it numbers what it asks for from 1 on.
        number = (message.request.leader_epoch if isinstance(message, AlterPartition) else 0, message.number)
        if number <= self._newest.get(way, _NOTHING_READ):
            return False
        self._newest[way] = number
        return True

    def _post(self, own: Address, out: Outbox) -> None:
        """Schedule the messages and timers of a process's outbox, and empty it."""
        now_ms, heap, asked = self.clock.at_ms, self._heap, self._asked
        if out.sent:
            node, arrivals = own.node, self.network.arrivals
            for receiver, message in out.sent:
                if receiver.node == node:
                    # What a hosted role and its broker say to each other does not pass the network.
                    asked += 1
                    heappush(heap, (now_ms, asked, own, own, message))
                    continue
                for at_ms in arrivals(node, receiver.node, message, now_ms):
                    asked += 1
                    heappush(heap, (at_ms, asked, receiver, own, message))
            out.sent = []
        if out.woken:
            for delay_ms, message in out.woken:
                asked += 1
                heappush(heap, (now_ms + delay_ms, asked, own, own, message))
            out.woken = []
        self._asked = asked


def replicas_of(partition: int, options: Options) -> tuple[BrokerId, ...]:
    """Return the replicas that a partition is created with: brokers in turn, the first shifted by the partition."""
    if options.assignment:
        return options.assignment[partition]
    return tuple(options.ids[(partition + place) % options.brokers] for place in range(options.replication_factor))


def _clients(options: Options, history: History) -> dict[NodeId, Producer | Consumer]:
    clients: dict[NodeId, Producer | Consumer] = {}
    for number in range(options.producers):
        node = NodeId(CLIENT_FIRST + number)
        entropy = SplitMix64(derive(options.seed, _CLIENT_STREAM, node - CONTROLLER))
        clients[node] = Producer(node, options, history, entropy)
    for number in range(options.consumers * options.partitions):
        node = NodeId(CLIENT_FIRST + options.producers + number)
        partition = number % options.partitions
        entropy = SplitMix64(derive(options.seed, _CLIENT_STREAM, node - CONTROLLER))
        clients[node] = Consumer(node, partition, options, history, entropy)
    return clients
