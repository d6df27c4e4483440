"""Hand a simulated cluster to a test: ask it, break it, look at what it holds.

Example: on virtual time, with nothing but asyncio; the cluster elects a leader at 9 s, when the session is over.

>>> import asyncio
>>> from replication.testing import run_virtual
>>> async def main(kafka):
...     first = kafka.leader("orders", 0)
...     kafka.kill_leader("orders", 0)
...     await asyncio.sleep(15)
...     return kafka.leader("orders", 0) != first, len(kafka.isr("orders", 0))
>>> run_virtual(main, seed=1, brokers=3, topics={"orders": 1})
(True, 2)

Source: ours.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import attrs

from broker.cluster import ClusterView
from broker.errors import UsageError
from broker.ids import INT32_MAX, NO_LEADER, BrokerId
from broker.wording import counted, first_of
from log.record import Record
from replication.checkers import DurabilityReport, Finding
from replication.roles.messages import NodeId
from replication.simulation.fault import Fault
from replication.simulation.network import two_ways
from replication.simulation.options import FaultKind
from replication.testing.cluster_spec import ClusterSpec, TopicSpec, checked_count, first_other
from replication.testing.connection import Side
from replication.testing.like import spec_like
from replication.testing.served import SERVED
from replication.testing.served_cluster import ServedCluster
from replication.testing.sockets import SocketServer
from replication.testing.topics import DURATION_MS

T = TypeVar("T")
Caller = Callable[[Callable[[], Any]], Any]
_DONE_MAX: Final = 50
_NAMES: Final = tuple(each.name for each in SERVED)


class ClusterBrokenError(AssertionError):
    """Report that an invariant of the cluster broke while a test ran: a bug of this library, not of the test."""


@attrs.frozen
class Verdict:
    """Hold what the checkers found, and the records that were acknowledged and cannot be read."""

    findings: tuple[Finding, ...]
    durability: DurabilityReport

    @property
    def is_clean(self) -> bool:
        """Return whether no invariant was broken and no record acknowledged with acks=all is lost."""
        return not self.findings and not self.durability.lost_by_all

    def __str__(self) -> str:
        """Return the verdict in words."""
        acked = self.durability.acked_count + self.durability.acked_by_one_count
        lost = len(self.durability.lost)
        broken = "; ".join(map(str, self.findings)) or "no invariant broken"
        return f"{broken}; {acked:,} records acknowledged, {lost:,} of them lost"


class Kafka:
    """Hold a running cluster; every call happens at the cluster's present time.

    Raises UsageError for a broker, topic or request that there is not.
    """

    def __init__(self, served: ServedCluster, call: Caller) -> None:
        self._served = served
        self._call = call
        self._cuts: list[tuple[NodeId, NodeId]] = []
        self.done: list[str] = []
        """What the program has done to the cluster, a line each."""

    # What there is.

    @property
    def bootstrap_servers(self) -> str:
        """Return host:port of every broker, as clients take it."""
        return ",".join(f"{each.host}:{each.port}" for _, each in sorted(self._served.endpoints.items()))

    @property
    def now_ms(self) -> int:
        """Return the time since the cluster began in ms."""
        return int(self._call(lambda: self._served.now_ms))

    def leader(self, topic: str, partition: int) -> int | None:
        """Return the leader of a partition by the controller; None without one."""
        state = self._state(topic, partition)
        return None if state.leader == NO_LEADER else int(state.leader)

    def isr(self, topic: str, partition: int) -> tuple[int, ...]:
        """Return the in-sync replicas of a partition by the controller."""
        return tuple(map(int, self._state(topic, partition).isr))

    def replicas(self, topic: str, partition: int) -> tuple[int, ...]:
        """Return the replicas of a partition, the preferred leader first."""
        return tuple(map(int, self._state(topic, partition).replicas))

    def records(self, topic: str, partition: int) -> tuple[Record, ...]:
        """Return the committed records in the log of a partition's leader; none without a leader."""
        return self._ask(lambda: self._served.records(topic, partition))

    def verdict(self) -> Verdict:
        """Return what the checkers have found so far, in the clients' writes too; not whether the cluster recovers."""
        simulation = self._served.simulation

        def judged() -> Verdict:
            durability = simulation.durability()
            return Verdict(simulation.findings_with(durability), durability)

        return self._ask(judged)

    @property
    def lines(self) -> tuple[str, ...]:
        """Return what has happened in the cluster, a line each."""
        return tuple(self._ask(lambda: list(self._served.cluster.trace.lines)))

    # What can be done to it.

    def kill(self, broker: int) -> None:
        """Kill a broker's process; its disk keeps what was written. Nothing happens to one that is down."""
        node = self._node(broker)

        def act() -> None:
            if node.role is not None:
                node.kill()
                self._note(f"broker {broker} is killed")

        self._ask(act)

    def restart(self, broker: int) -> None:
        """Start a broker's process, after killing it if it runs.

        A broker that was killed stays away until its session is over, 9 s after its last heartbeat by default
        (broker.session.timeout.ms): until then the controller refuses to register it again, as one with its id is
        registered (ClusterControlManager, 4.4.0).
        """
        self.kill(broker)

        def act() -> None:
            self._note(f"broker {broker} starts")
            self._served.cluster.start_broker(BrokerId(broker))

        self._ask(act)

    def kill_leader(self, topic: str, partition: int) -> int:
        """Kill the leader of a partition and return its id; raises UsageError if there is none."""
        leader = self.leader(topic, partition)
        if leader is None:
            raise UsageError(f"partition {partition} of topic {topic!r} has no leader to kill")
        self.kill(leader)
        return leader

    def pause(self, broker: int) -> None:
        """Let a broker's process stand still until `resume`."""
        node = self._node(broker)

        def act() -> None:
            if node.role is not None:
                node.is_paused = True
                self._note(f"broker {broker} stands still")

        self._ask(act)

    def resume(self, broker: int) -> None:
        """Let a paused broker go on."""
        self._node(broker)

        def act() -> None:
            self._served.cluster.resume(BrokerId(broker))
            self._note(f"broker {broker} goes on")

        self._ask(act)

    def partition(self, *groups: Collection[int]) -> None:
        """Cut the network between groups of brokers until `heal`; clients and the controller reach all of them."""
        self._check_groups(groups)

        def act() -> None:
            network = self._served.cluster.network
            for place, group in enumerate(groups):
                others = tuple(NodeId(each) for rest in groups[place + 1 :] for each in sorted(rest))
                for broker in sorted(group):
                    for way in two_ways(NodeId(broker), others):
                        network.cut(*way)
                        self._cuts.append(way)
            self._note("the network is cut between " + " | ".join(str(sorted(group)) for group in groups))

        self._ask(act)

    def fill_disk(self, broker: int) -> None:
        """Fill a broker's disk: the next write fails, and with its only log directory the broker shuts down.

        The other replicas go on. `heal` makes room and starts the broker; a `restart` before that ends in the same way.
        """
        self._node(broker)
        served = self._served

        def act() -> None:
            served.simulation.inject(Fault(served.now_ms, FaultKind.FULL_DISK, broker, duration_ms=DURATION_MS))
            self._note(f"the disk of broker {broker} is filled")

        self._ask(act)

    def heal(self) -> None:
        """Undo `partition`, `delay`, `drop`, `pause` and `fill_disk`; brokers that were killed stay down."""

        def act() -> None:
            self._served.simulation.fault_injector.disks.mend()
            for way in self._cuts:
                self._served.cluster.network.heal(*way)
            self._cuts.clear()
            self._served.interference.drops.clear()
            self._served.interference.delay_ms = 0
            for broker, node in sorted(self._served.cluster.nodes.items()):
                if node.is_paused:
                    self._served.cluster.resume(broker)
            self._note("all is healed")

        self._ask(act)

    def drop(self, request: str, count: int = 1, *, response: bool = False) -> None:
        """Drop the next requests of an API, or their responses; each breaks its connection.

        A request that is dropped was not carried out; one whose response is dropped was.
        """
        if request not in _NAMES:
            raise UsageError(f"request {request!r} is not served; requests are: {', '.join(_NAMES)}")
        checked_count("count", count, 1, INT32_MAX)
        side = Side.RESPONSE if response else Side.REQUEST

        def act() -> None:
            self._served.interference.drops.update({(request, side): count})
            self._note(f"the next {counted(count, side.name.lower())} of {request} are dropped")

        self._ask(act)

    def delay(self, delay_ms: int) -> None:
        """Hold every response back for `delay_ms`; 0 ends it."""
        checked_count("delay_ms", delay_ms, 0, DURATION_MS)

        def act() -> None:
            self._served.interference.delay_ms = delay_ms
            self._note(f"responses are held back for {delay_ms} ms")

        self._ask(act)

    # Within.

    def _ask(self, action: Callable[[], T]) -> T:
        found: T = self._call(action)
        return found

    def _state(self, topic: str, partition: int) -> Any:
        served = self._served
        return self._ask(lambda: served.cluster.controller.image.partitions[served.number_of(topic, partition)])

    def _node(self, broker: int) -> Any:
        nodes = self._served.cluster.nodes
        if first_other((broker,), nodes):
            raise UsageError(f"there is no broker {broker!r}; brokers are {self._served.simulation.options.ids_shown}")
        return nodes[BrokerId(broker)]

    def _check_groups(self, groups: tuple[Collection[int], ...]) -> None:
        such = "such as partition({0}, {1, 2})"
        if len(groups) < 2:
            raise UsageError(
                f"{counted(len(groups), 'group')} of brokers cannot be cut apart; give two or more, {such}"
            )
        seen: set[int] = set()
        for group in groups:
            if isinstance(group, str) or not isinstance(group, Collection) or not group:
                raise UsageError(f"a group of brokers is {group!r}; wanted are sets of brokers, {such}")
            for broker in group:
                self._node(broker)
            if both := seen.intersection(group):
                raise UsageError(f"broker {min(both)} is in two groups; each broker is in one at most, {such}")
            seen.update(group)

    def _note(self, text: str) -> None:
        self.done.append(f"at {self._served.now_ms} ms {text}")
        self._served.cluster.trace.line(self._served.now_ms, text)


def checked(kafka: Kafka, spec: ClusterSpec, *, is_virtual: bool = True) -> None:
    """Raise ClusterBrokenError if an invariant broke, with the seed; in real time with what was done to the cluster."""
    verdict = kafka.verdict()
    if not verdict.findings:
        return
    if is_virtual:
        raise ClusterBrokenError(f"{verdict}; replay with seed={spec.seed}")
    done = first_of(kafka.done, _DONE_MAX) or "nothing"
    raise ClusterBrokenError(f"{verdict}; in real time seed={spec.seed} alone replays no run, and done was: {done}")


@contextmanager
def kafka_cluster(
    brokers: int | None = None,
    racks: tuple[str, ...] | None = None,
    topics: Mapping[str, int | TopicSpec] | None = None,
    seed: int = 0,
    like: ClusterView | None = None,
    **options: Any,
) -> Iterator[Kafka]:
    """Serve a cluster on ports of 127.0.0.1 while the block runs; raise ClusterBrokenError if an invariant broke.

    Three brokers without racks are served, unless `brokers` and `racks` say otherwise. `like` is a `ClusterView`, whose
    brokers, racks, topics, replicas and settings are served, without records, in the place of both. `options` are the
    further fields of `ClusterSpec`, such as `min_insync_replicas`.

    Example: one like the cluster of a dump.

    >>> from pathlib import Path
    >>> from placement.formats.read import read_dump
    >>> path = Path("tests/real_data/multiregion/1-baseline.txt")
    >>> (view,) = read_dump([path.read_bytes()], source="prod").clusters
    >>> with kafka_cluster(like=view) as kafka:
    ...     kafka.replicas("single-region", 0)
    (2, 1)
    """
    given = {"brokers": brokers, "racks": racks}
    options |= {name: value for name, value in given.items() if value is not None}
    options |= {"topics": topics or {}, "seed": seed}
    spec = ClusterSpec(**options) if like is None else spec_like(like, **options).spec
    server = SocketServer(spec)
    server.start()
    kafka = Kafka(server.served, server.call)
    try:
        yield kafka
        checked(kafka, spec, is_virtual=False)
    finally:
        server.stop()
