"""Reach the partitions of one simulated cluster from outside: read what is committed, write with acks=all, create.

Constraints: what is read is below the high watermark of the partition's leader; without a leader, or while its broker
is down, nothing can be read. Batches of a partition are written in order, each until it is acknowledged.

Source: Kafka connect runtime ConnectorUtils.producerProps (WorkerConfig) and clients KafkaConsumer, 4.3.1.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from broker.entropy import SplitMix64, derive
from broker.error_codes import ErrorCode
from broker.ids import NO_LEADER, BrokerId, Offset, PartitionId, TopicPartition
from broker.units import DurationMs, TimeMs
from log.partition.partition_log import PartitionLog
from log.record import Record
from replication.checkers import Finding
from replication.roles.messages import (
    CONTROLLER,
    Address,
    ClientDue,
    CreateTopic,
    Message,
    MetadataRequest,
    MetadataResponse,
    NodeId,
    Produce,
    ProduceResponse,
)
from replication.roles.outbox import Outbox
from replication.rules.produce import ACKS_ALL
from replication.simulation.clients import RETRY_MS
from replication.simulation.cluster import Cluster, replicas_of
from replication.simulation.options import Options
from replication.simulation.views import records_of

_CREATE_MS: Final = 1_000
_STREAM: Final = 104
OnWritten = Callable[[Offset], None]


class MirroredCluster:
    """Extend one cluster by topics, a writer, and the committed offsets of groups; it is the run's extension."""

    def __init__(self, options: Options, topics: Sequence[tuple[str, int]], internal: Sequence[str]) -> None:
        self.groups: dict[str, dict[TopicPartition, Offset]] = {}
        self.cluster: Cluster
        self._options = options
        self._numbers: dict[TopicPartition, int] = {}
        self._queues: dict[int, deque[tuple[bytes, OnWritten]]] = {}
        self._leaders: dict[int, BrokerId] = {}
        self._asked: dict[int, int] = {}
        """The partition of each request that waits for a response, by the request's number."""
        self._number = 0
        self._entropy = SplitMix64(derive(options.seed, _STREAM))
        for topic, count in (*topics, *((name, 1) for name in internal)):
            self._grow(topic, count)
        self._internal = frozenset(internal)

    # What a run calls.

    def join(self, cluster: Cluster) -> None:
        """Join the cluster as a client."""
        self.cluster = cluster
        self._node = cluster.join(lambda node: self)

    def missing(self, cluster: Cluster) -> str | None:
        """Return None: the run of the mirror says what is missing."""
        return None

    def findings(self, cluster: Cluster) -> Sequence[Finding]:
        """Return nothing: the copy is checked when both clusters have healed."""
        return ()

    def begin(self, out: Outbox) -> None:
        """Do nothing until there is something to write."""

    def every(self, every_ms: int, action: Callable[[], bool | None]) -> None:
        """Repeat an action every `every_ms` until it returns False."""

        def due() -> None:
            if action() is not False:
                self.cluster.at(self.cluster.now_ms + every_ms, due)

        self.cluster.at(self.cluster.now_ms + every_ms, due)

    # Topics.

    def counts(self) -> dict[str, int]:
        """Return the number of partitions of each topic that is not internal, sorted by name."""
        topics = sorted(each.topic for each in self._numbers if each.topic not in self._internal)
        return {topic: topics.count(topic) for topic in topics}

    def partitions(self) -> tuple[TopicPartition, ...]:
        """Return all partitions of topics that are not internal, sorted."""
        return tuple(sorted(each for each in self._numbers if each.topic not in self._internal))

    def create(self, topic: str, count: int) -> None:
        """Create a topic with `count` partitions, or raise an existing one to that many."""
        for number in self._grow(topic, count):
            self._create(number)

    def _grow(self, topic: str, count: int) -> list[int]:
        wanted = (TopicPartition(topic, PartitionId(place)) for place in range(count))
        added = [partition for partition in wanted if partition not in self._numbers]
        numbers = [len(self._numbers) + place for place in range(len(added))]
        self._numbers.update(zip(added, numbers, strict=True))
        return numbers

    def _create(self, number: int) -> None:
        """Create a partition, and repeat the request until it exists."""
        cluster = self.cluster
        if number not in cluster.controller.image.partitions:
            cluster.deliver(CONTROLLER, CreateTopic(number, replicas_of(number, cluster.options)))
            cluster.at(cluster.now_ms + _CREATE_MS, lambda: self._create(number))

    # Reading.

    def end(self, partition: TopicPartition) -> Offset | None:
        """Return the high watermark of a partition's leader, None without a leader."""
        log = self._leader_log(partition)
        return None if log is None else log.high_watermark

    def read(self, partition: TopicPartition, start_offset: int = 0) -> tuple[Record, ...]:
        """Return the committed records of a partition from `start_offset` on; none without a leader."""
        log = self._leader_log(partition)
        return () if log is None else tuple(records_of(log, log.high_watermark, Offset(start_offset)))

    def _leader_log(self, partition: TopicPartition) -> PartitionLog | None:
        log = self.cluster.leader_log(self._numbers[partition])
        return None if log is None else log.log

    # Writing.

    def write(self, partition: TopicPartition, batch: bytes, then: OnWritten = lambda offset: None) -> None:
        """Write a batch after those that wait; `then` is called with the offset of its first record."""
        number = self._numbers[partition]
        queue = self._queues.setdefault(number, deque())
        queue.append((batch, then))
        if len(queue) == 1:
            self.cluster.deliver(self._node, ClientDue(self._question(number)))

    def reset(self) -> None:
        """Drop all batches that are not acknowledged; requests in flight still arrive."""
        self._queues.clear()
        self._asked.clear()

    def handle(self, message: Message, now_ms: TimeMs, out: Outbox) -> None:
        """Take a response or a wake-up, and go on with its partition."""
        assert isinstance(message, ClientDue | MetadataResponse | ProduceResponse), message
        number = self._asked.pop(message.number, None)
        if number is None:
            return
        if isinstance(message, MetadataResponse):
            self._leaders[number] = message.leader
        elif isinstance(message, ProduceResponse) and message.error is ErrorCode.NONE:
            _, then = self._queues[number][0]
            then(message.offset)  # It may write again.
            self._queues[number].popleft()
        else:  # An error, no response, or the first batch: the leader is looked up.
            self._leaders.pop(number, None)
        if self._queues[number]:
            self._ask(number, out)

    def _ask(self, number: int, out: Outbox) -> None:
        """Send the next batch to the leader, or look the leader up; ClientDue comes without a response."""
        settings, leader = self._options.role_settings, self._leaders.get(number)
        question = self._question(number)
        if leader == NO_LEADER:
            del self._leaders[number]
            out.wake(RETRY_MS, ClientDue(question))
        elif leader is None:
            broker = NodeId(self._entropy.next_int_bound(self._options.brokers))
            out.wake(settings.answer_ms_max, ClientDue(question))
            out.send(Address(broker), MetadataRequest(number, question))
        else:
            out.wake(DurationMs(settings.produce_ms_max + settings.answer_ms_max), ClientDue(question))
            out.send(Address(NodeId(leader)), Produce(number, question, ACKS_ALL, self._queues[number][0][0]))

    def _question(self, number: int) -> int:
        self._number += 1
        self._asked[self._number] = number
        return self._number
