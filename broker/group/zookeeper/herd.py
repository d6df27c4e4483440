"""Simulate a group of consumers before 0.9: each consumer watches ZooKeeper and assigns itself partitions.

How (0.8): a consumer registers under the group's ids and watches them. When the watch fires, it releases its
partitions, reads the ids, takes its range, and creates an owner node for each partition of the range. If one exists
already, it deletes those it has created, waits for `backoff_ms` and begins again; after `retry_count_max` attempts it
owns nothing. One change wakes every consumer, and each reads the whole group (herd effect); two that have read
different members compute ranges that overlap (split brain), though no partition ever has two owners.

Example: of 20 consumers one dies: 19 are woken, and each reads the group at least once.

    >>> from broker.entropy import SplitMix64
    >>> herd = Herd(HerdOptions(consumer_count=20, retry_count_max=100), SplitMix64(1))
    >>> started = herd.start()
    >>> herd.crash("c0007")
    >>> herd.settle().woken_count
    19

Left out: several topics and threads, rebalances for new brokers, offsets (kept in ZooKeeper too).

Source: kafka.consumer.ZookeeperConsumerConnector (syncedRebalance, rebalance, reflectPartitionOwnershipDecision),
0.8.2; kafka.utils.ZkUtils for the paths; rebalance.max.retries, rebalance.backoff.ms, zookeeper.session.timeout.ms.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from functools import partial
from typing import Final

import attrs

from broker.draws import exponential
from broker.entropy import RandomSource
from broker.errors import UsageError
from broker.units import DurationMs
from broker.zookeeper import NodeKind, Session, WatchedEvent, ZnodeCode, ZnodeRefusedError, ZnodeTree

IDS: Final = "/consumers/group/ids"
OWNERS: Final = "/consumers/group/owners/topic"
_TICK: Final = 1


@attrs.frozen(kw_only=True)
class HerdOptions:
    """Set the size of a group, its settings and its delays; `arrival_ms` is exact, other delays are means.

    Defaults of the settings are those of Kafka 0.8.2.
    """

    consumer_count: int = 20
    partition_count: int = 60
    retry_count_max: int = 4
    backoff_ms: DurationMs = attrs.field(default=DurationMs(2000))
    session_timeout_ms: DurationMs = attrs.field(default=DurationMs(6000))
    arrival_ms: DurationMs = attrs.field(default=DurationMs(100))
    notice_ms: DurationMs = attrs.field(default=DurationMs(50))
    round_trip_ms: DurationMs = attrs.field(default=DurationMs(5))

    def __attrs_post_init__(self) -> None:
        for field in attrs.fields(HerdOptions):
            least = 1 if field.name.endswith("count") else 0
            if getattr(self, field.name) < least:
                raise UsageError(f"{field.name} is {getattr(self, field.name)}; at least {least} is allowed")


@attrs.frozen(kw_only=True)
class HerdReport:
    """Report the rebalances, conflicts, ZooKeeper requests and time that a group needed to settle.

    `unowned_partition_ms` is the time without an owner, summed over the partitions.

    A disagreement is a read of the group that differs from what another live consumer has read; a conflict is a claim
    of a partition that another consumer still owns.
    """

    woken_count: int
    rebalance_count: int
    conflict_count: int
    disagreement_count: int
    failed_consumer_count: int
    read_count: int
    write_count: int
    unowned_partition_ms: int
    settled_ms: int


@attrs.define(eq=False)
class _Consumer:
    session: Session
    is_alive: bool = True
    has_failed: bool = False
    attempt: int = 0
    view: tuple[str, ...] = ()
    owned: list[int] = attrs.field(factory=list)
    turn: int = 0
    """Counts the interruptions of the consumer: a step that was planned in an earlier turn is dropped."""


class Herd:
    """Simulate a group of consumers and its ZooKeeper on a virtual clock."""

    def __init__(self, options: HerdOptions, entropy: RandomSource) -> None:
        self.options = options
        self.entropy = entropy
        self.nodes: ZnodeTree[None] = ZnodeTree()
        for path in (IDS, OWNERS):
            self.nodes.make_way(path)
        self.now_ms = 0
        self._agenda: list[tuple[int, int, Callable[[], None]]] = []
        self._step_count = 0
        self._consumers: dict[Session, _Consumer] = {}
        self._unowned_ms = 0
        self._owned_count = 0
        self._woken = self._rebalances = self._conflicts = self._disagreements = 0
        self._reads = self._writes = 0

    def start(self) -> HerdReport:
        """Start the consumers, `arrival_ms` apart, let the group settle, and return the counts."""
        for number in range(self.options.consumer_count):
            name = f"c{number:04d}"
            self._after(number * self.options.arrival_ms, partial(self.join, name))
        return self.settle()

    def join(self, name: str) -> None:
        """Register a consumer; its registration wakes the others, and every consumer rebalances."""
        consumer = _Consumer(Session(name))
        self._consumers[consumer.session] = consumer
        self.nodes.open(consumer.session)
        self._writes += 1
        self._tell(self.nodes.create(f"{IDS}/{name}", kind=NodeKind.EPHEMERAL, session=consumer.session).events)
        self._begin(consumer)

    def crash(self, name: str) -> None:
        """Kill a consumer; its owner nodes stay until ZooKeeper ends its session, after `session_timeout_ms`."""
        consumer = self._consumers[Session(name)]
        consumer.is_alive = False
        consumer.turn += 1
        self._owned_count -= len(consumer.owned)
        self._after(self.options.session_timeout_ms, lambda: self._expire(consumer))

    def settle(self) -> HerdReport:
        """Run until no event is scheduled, and return the counts since the last report."""
        start_ms = self.now_ms
        while self._agenda:
            at_ms, _, action = heapq.heappop(self._agenda)
            self._pass(at_ms)
            action()
        report = HerdReport(
            woken_count=self._woken,
            rebalance_count=self._rebalances,
            conflict_count=self._conflicts,
            disagreement_count=self._disagreements,
            failed_consumer_count=sum(consumer.has_failed for consumer in self._consumers.values()),
            read_count=self._reads,
            write_count=self._writes,
            unowned_partition_ms=self._unowned_ms,
            settled_ms=self.now_ms - start_ms,
        )
        self._woken = self._rebalances = self._conflicts = self._disagreements = self._unowned_ms = 0
        self._reads = self._writes = 0
        return report

    def owners(self) -> dict[int, Session]:
        """Return the owner of each partition that has an owner."""
        return {partition: c.session for c in self._consumers.values() if c.is_alive for partition in c.owned}

    def first_active(self) -> str:
        """Return the first live consumer that has not given up, else the first live consumer."""
        alive = sorted((each.has_failed, each.session) for each in self._consumers.values() if each.is_alive)
        return alive[0][1]

    def _pass(self, at_ms: int) -> None:
        missing = self.options.partition_count - self._owned_count
        self._unowned_ms += missing * (at_ms - self.now_ms)
        self.now_ms = at_ms

    def _after(self, delay_ms: int, action: Callable[[], None]) -> None:
        self._step_count += 1
        heapq.heappush(self._agenda, (self.now_ms + delay_ms, self._step_count, action))

    def _later(self, consumer: _Consumer, mean_ms: int, action: Callable[[], None]) -> None:
        """Plan the consumer's next step after a drawn delay; an interruption of the consumer cancels it."""
        turn = consumer.turn
        self._after(_TICK + exponential(self.entropy, mean_ms), lambda: action() if consumer.turn == turn else None)

    def _tell(self, events: tuple[WatchedEvent, ...]) -> None:
        for each in events:
            consumer = self._consumers[each.session]
            if consumer.is_alive and not consumer.has_failed:
                delay_ms = _TICK + exponential(self.entropy, self.options.notice_ms)
                self._after(delay_ms, partial(self._wake, consumer))

    def _wake(self, consumer: _Consumer) -> None:
        if consumer.is_alive and not consumer.has_failed:
            self._woken += 1
            self._begin(consumer)

    def _begin(self, consumer: _Consumer) -> None:
        consumer.turn += 1
        consumer.attempt = 0
        self._rebalance(consumer)

    def _rebalance(self, consumer: _Consumer) -> None:
        """Delete the owner nodes of the consumer's partitions, then read the group from ZooKeeper."""
        self._rebalances += 1
        self._release(consumer, consumer.owned)
        self._owned_count -= len(consumer.owned)
        consumer.owned = []
        self._later(consumer, self.options.round_trip_ms, lambda: self._read(consumer))

    def _release(self, consumer: _Consumer, partitions: list[int]) -> None:
        for partition in partitions:
            self.nodes.delete(f"{OWNERS}/{partition}", session=consumer.session)
        self._writes += len(partitions)

    def _read(self, consumer: _Consumer) -> None:
        consumer.view = tuple(sorted(self.nodes.children(IDS, consumer.session)))
        # Each list is one read, and each node in it another one.
        self._reads += 2 + len(consumer.view) + len(self.nodes.children(OWNERS))
        others = (each for each in self._consumers.values() if each.is_alive and each.view)
        self._disagreements += any(other.view != consumer.view for other in others)
        self._later(consumer, self.options.round_trip_ms, lambda: self._claim(consumer))

    def _claim(self, consumer: _Consumer) -> None:
        """Create an owner node for each partition of the consumer's range; after a conflict, release them all."""
        start, end = range_of(consumer.view.index(consumer.session), len(consumer.view), self.options.partition_count)
        claims: list[int] = []
        for partition in range(start, end):
            self._writes += 1
            if not self._is_claimed(consumer, partition):
                self._conflicts += 1
                self._release(consumer, claims)
                self._retry(consumer)
                return
            claims.append(partition)
        consumer.owned = claims
        self._owned_count += len(claims)

    def _is_claimed(self, consumer: _Consumer, partition: int) -> bool:
        """Create a partition's owner node; return False where it exists already."""
        try:
            self.nodes.create(f"{OWNERS}/{partition}", kind=NodeKind.EPHEMERAL, session=consumer.session)
        except ZnodeRefusedError as refused:
            if refused.code is not ZnodeCode.NODE_EXISTS:
                raise
            return False
        return True

    def _retry(self, consumer: _Consumer) -> None:
        consumer.attempt += 1
        if consumer.attempt >= self.options.retry_count_max:
            consumer.has_failed = True
            return
        turn = consumer.turn
        self._after(self.options.backoff_ms, lambda: self._rebalance(consumer) if consumer.turn == turn else None)

    def _expire(self, consumer: _Consumer) -> None:
        self._tell(self.nodes.close(consumer.session))


@attrs.frozen(kw_only=True)
class HerdEpisode:
    """Count the cost of one change of a group; `ownerless_count` counts the partitions without an owner afterwards."""

    what: str
    report: HerdReport
    ownerless_count: int


def herd_episodes(options: HerdOptions, entropy: RandomSource) -> tuple[HerdEpisode, ...]:
    """Simulate three rebalances of one group: all consumers start, one joins, the first active one dies."""
    herd = Herd(options, entropy)
    episodes: list[HerdEpisode] = []

    def add(what: str, report: HerdReport) -> None:
        ownerless_count = options.partition_count - len(herd.owners())
        episodes.append(HerdEpisode(what=what, report=report, ownerless_count=ownerless_count))

    add(f"{options.consumer_count} start", herd.start())
    herd.join(f"c{options.consumer_count:04d}")
    add("one more joins", herd.settle())
    herd.crash(herd.first_active())
    add("one dies", herd.settle())
    return tuple(episodes)


def range_of(place: int, consumer_count: int, partition_count: int) -> tuple[int, int]:
    """Return the half-open range of partitions of the consumer at index `place` in the order of names.

    >>> [range_of(place, 3, 10) for place in range(3)]
    [(0, 4), (4, 7), (7, 10)]
    """
    each, more = divmod(partition_count, consumer_count)
    start = each * place + min(place, more)
    return start, start + each + (place < more)
