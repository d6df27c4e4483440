"""Simulate a group before 0.9, without a coordinator: each consumer watches ZooKeeper and takes its own partitions.

A consumer registers under the group's ids and watches them. When the watch fires, it releases its partitions, reads the
ids, takes its range, and creates an owner node for each partition of the range. If one exists already, it deletes those
it has created, waits for `backoff_ms` and begins again, `retry_count_max` times. One change wakes every consumer, and
each reads the whole group (herd effect); two that have read different members compute ranges that overlap (split
brain), though no partition ever has two owners.

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
from broker.zookeeper import NodeKind, Session, WatchedEvent, ZnodeCode, ZnodeRefusedError, ZnodeTree

IDS: Final = "/consumers/group/ids"
OWNERS: Final = "/consumers/group/owners/topic"
_TICK: Final = 1


@attrs.frozen(kw_only=True)
class HerdOptions:
    """Set the size of a group, Kafka 0.8.2's settings, and delays in ms; `arrival_ms` is exact, other delays means."""

    consumer_count: int = 20
    partition_count: int = 60
    retry_count_max: int = 4
    backoff_ms: int = 2000
    session_timeout_ms: int = 6000
    arrival_ms: int = 100
    notice_ms: int = 50
    round_trip_ms: int = 5

    def __attrs_post_init__(self) -> None:
        for name, value in attrs.asdict(self).items():
            least = 1 if name.endswith("count") else 0
            if value < least:
                raise UsageError(f"{name} is {value}; at least {least} is allowed")


@attrs.define(kw_only=True)
class HerdEpisode:
    """Count what one change of a group cost until the group settled.

    A disagreement is a read of the group that differs from what another live consumer has read; a conflict is a claim
    of a partition that another consumer still owns; `unowned_partition_ms` is summed over the partitions.
    """

    what: str = ""
    woken_count: int = 0
    rebalance_count: int = 0
    conflict_count: int = 0
    disagreement_count: int = 0
    failed_consumer_count: int = 0
    read_count: int = 0
    write_count: int = 0
    unowned_partition_ms: int = 0
    settled_ms: int = 0
    ownerless_count: int = 0


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
        self.consumers: dict[Session, _Consumer] = {}
        self._agenda: list[tuple[int, int, Callable[[], None]]] = []
        self._step_count = 0
        self._counts = HerdEpisode()

    def start(self) -> None:
        """Let the consumers start, `arrival_ms` apart."""
        for number in range(self.options.consumer_count):
            self._after(number * self.options.arrival_ms, partial(self.join, f"c{number:04d}"))

    def join(self, name: str) -> None:
        """Register a consumer; its registration wakes the others, and every consumer rebalances."""
        consumer = _Consumer(Session(name))
        self.consumers[consumer.session] = consumer
        self.nodes.open(consumer.session)
        self._counts.write_count += 1
        self._notify(self.nodes.create(f"{IDS}/{name}", kind=NodeKind.EPHEMERAL, session=consumer.session).events)
        self._begin(consumer)

    def crash(self, name: str) -> None:
        """Kill a consumer; its owner nodes stay until ZooKeeper ends its session, after `session_timeout_ms`."""
        consumer = self.consumers[Session(name)]
        consumer.is_alive = False
        consumer.turn += 1
        self._after(self.options.session_timeout_ms, lambda: self._notify(self.nodes.close(consumer.session)))

    def settle(self, what: str) -> HerdEpisode:
        """Run until no event is scheduled, and return the counts since the last call."""
        start_ms = self.now_ms
        while self._agenda:
            at_ms, _, action = heapq.heappop(self._agenda)
            self._counts.unowned_partition_ms += self._ownerless_count() * (at_ms - self.now_ms)
            self.now_ms = at_ms
            action()
        counts, self._counts = self._counts, HerdEpisode()
        failed_count = sum(consumer.has_failed for consumer in self.consumers.values())
        return attrs.evolve(
            counts,
            what=what,
            failed_consumer_count=failed_count,
            settled_ms=self.now_ms - start_ms,
            ownerless_count=self._ownerless_count(),
        )

    def owners(self) -> dict[int, Session]:
        """Return the owner of each partition that has an owner."""
        return {partition: c.session for c in self.consumers.values() if c.is_alive for partition in c.owned}

    def first_active(self) -> str:
        """Return the first live consumer that has not given up, else the first live consumer."""
        return min((each.has_failed, each.session) for each in self.consumers.values() if each.is_alive)[1]

    def _ownerless_count(self) -> int:
        return self.options.partition_count - sum(len(c.owned) for c in self.consumers.values() if c.is_alive)

    def _after(self, delay_ms: int, action: Callable[[], None]) -> None:
        self._step_count += 1
        heapq.heappush(self._agenda, (self.now_ms + delay_ms, self._step_count, action))

    def _next(self, consumer: _Consumer, delay_ms: int, step: Callable[[_Consumer], None]) -> None:
        """Plan the consumer's next step; an interruption of the consumer cancels it."""
        turn = consumer.turn
        self._after(delay_ms, lambda: step(consumer) if consumer.turn == turn else None)

    def _drawn_ms(self, mean_ms: int) -> int:
        return _TICK + exponential(self.entropy, mean_ms)

    def _notify(self, events: tuple[WatchedEvent, ...]) -> None:
        for each in events:
            consumer = self.consumers[each.session]
            if consumer.is_alive and not consumer.has_failed:
                self._after(self._drawn_ms(self.options.notice_ms), partial(self._wake, consumer))

    def _wake(self, consumer: _Consumer) -> None:
        if consumer.is_alive and not consumer.has_failed:
            self._counts.woken_count += 1
            self._begin(consumer)

    def _begin(self, consumer: _Consumer) -> None:
        consumer.turn += 1
        consumer.attempt = 0
        self._rebalance(consumer)

    def _rebalance(self, consumer: _Consumer) -> None:
        """Delete the owner nodes of the consumer's partitions, then read the group from ZooKeeper."""
        self._counts.rebalance_count += 1
        self._release(consumer, consumer.owned)
        consumer.owned = []
        self._next(consumer, self._drawn_ms(self.options.round_trip_ms), self._read)

    def _release(self, consumer: _Consumer, partitions: list[int]) -> None:
        for partition in partitions:
            self.nodes.delete(f"{OWNERS}/{partition}", session=consumer.session)
        self._counts.write_count += len(partitions)

    def _read(self, consumer: _Consumer) -> None:
        consumer.view = tuple(sorted(self.nodes.children(IDS, consumer.session)))
        # Each list is one read, and each node in it another one.
        self._counts.read_count += 2 + len(consumer.view) + len(self.nodes.children(OWNERS))
        others = (each for each in self.consumers.values() if each.is_alive and each.view)
        self._counts.disagreement_count += any(other.view != consumer.view for other in others)
        self._next(consumer, self._drawn_ms(self.options.round_trip_ms), self._claim)

    def _claim(self, consumer: _Consumer) -> None:
        """Create an owner node for each partition of the consumer's range; after a conflict, release them all."""
        claims: list[int] = []
        place, count = consumer.view.index(consumer.session), len(consumer.view)
        for partition in range(*range_of(place, count, self.options.partition_count)):
            self._counts.write_count += 1
            try:
                self.nodes.create(f"{OWNERS}/{partition}", kind=NodeKind.EPHEMERAL, session=consumer.session)
            except ZnodeRefusedError as refused:
                if refused.code is not ZnodeCode.NODE_EXISTS:
                    raise
                self._counts.conflict_count += 1
                self._release(consumer, claims)
                consumer.attempt += 1
                consumer.has_failed = consumer.attempt >= self.options.retry_count_max
                if not consumer.has_failed:
                    self._next(consumer, self.options.backoff_ms, self._rebalance)
                return
            claims.append(partition)
        consumer.owned = claims


def herd_episodes(options: HerdOptions, entropy: RandomSource) -> tuple[HerdEpisode, HerdEpisode, HerdEpisode]:
    """Simulate three rebalances of one group: all consumers start, one joins, the first active one dies."""
    herd = Herd(options, entropy)
    herd.start()
    started = herd.settle(f"{options.consumer_count} start")
    herd.join(f"c{options.consumer_count:04d}")
    joined = herd.settle("one more joins")
    herd.crash(herd.first_active())
    return started, joined, herd.settle("one dies")


def range_of(place: int, consumer_count: int, partition_count: int) -> tuple[int, int]:
    """Return the half-open range of partitions of the consumer at index `place` in the order of names.

    >>> [range_of(place, 3, 10) for place in range(3)]
    [(0, 4), (4, 7), (7, 10)]
    """
    each, more = divmod(partition_count, consumer_count)
    start = each * place + min(place, more)
    return start, start + each + (place < more)
