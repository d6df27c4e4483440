"""Simulate how a producer's records gather in batches: batch.size, linger.ms and the partitioner.

A record goes to the end of its partition's queue, into the last batch if it has room. A broker is ready when the first
batch of one of its partitions is full or has waited for linger.ms, and fewer than max.in.flight.requests.per.connection
requests are on their way to it. A request then takes the first batch of *each* of that broker's partitions, up to
max.request.size, beginning after the partition it ended with last time.

Left out: compression, retries, buffer.memory, several topics and threads.
Source: org.apache.kafka.clients.producer.internals RecordAccumulator, ProducerBatch and Sender, 4.0.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import Final

import attrs
import numpy as np

from broker.cluster import Int64Array
from broker.errors import UsageError
from broker.ids import BrokerId, PartitionId
from broker.units import KIB, MIB, DurationMs, SizeBytes, TimeMs
from placement.producer.partitioners import Partitioner, QueueEnd, TopicPartitions

BATCH_OVERHEAD_BYTES: Final = 61
"""The header of a record batch of magic 2; DefaultRecordBatch.RECORD_BATCH_OVERHEAD."""

UNPLACED: Final = PartitionId(-1)
"""A record without a key: the partitioner chooses."""


@attrs.frozen(kw_only=True)
class ProducerOptions:
    """Hold the producer settings that shape batches, with Kafka 4.0's defaults, and the brokers' response time."""

    batch_size_bytes: SizeBytes = attrs.field(default=SizeBytes(16 * KIB))
    linger_ms: DurationMs = attrs.field(default=DurationMs(5))
    in_flight_count_max: int = attrs.field(default=5)
    request_size_bytes_max: SizeBytes = attrs.field(default=SizeBytes(MIB))
    round_trip_ms: DurationMs = attrs.field(default=DurationMs(2))

    def __attrs_post_init__(self) -> None:
        for name, least in (
            ("batch_size_bytes", 0),
            ("linger_ms", 0),
            ("in_flight_count_max", 1),
            ("request_size_bytes_max", 0),
            ("round_trip_ms", 0),
        ):
            if getattr(self, name) < least:
                raise UsageError(f"{name} is {getattr(self, name)}; at least {least} is allowed")


@attrs.frozen(eq=False)
class Arrivals:
    """Hold the records given to the producer: `time_ms` rising, `size_bytes` in the batch, and a partition or UNPLACED.

    Three int64[records] columns. Raises UsageError when they differ in length or the times fall.
    """

    time_ms: Int64Array
    size_bytes: Int64Array
    partition: Int64Array

    def __attrs_post_init__(self) -> None:
        if not len(self.time_ms) == len(self.size_bytes) == len(self.partition):
            raise UsageError("the columns of arrivals differ in length")
        if (np.diff(self.time_ms) < 0).any():
            raise UsageError("the times of arrivals must not fall")
        if (self.size_bytes < 1).any():
            raise UsageError("a record takes at least 1 byte")


@attrs.frozen
class SentBatch:
    """Describe one batch: the times it was begun and sent, its records and bytes."""

    partition: PartitionId
    created_ms: TimeMs
    sent_ms: TimeMs
    record_count: int
    size_bytes: SizeBytes


@attrs.frozen(eq=False)
class Sent:
    """Hold the result of a run: batches in the order sent, requests, and each record's wait, int64[records]."""

    batches: tuple[SentBatch, ...]
    request_count: int
    waited_ms: Int64Array

    @property
    def records_per_batch(self) -> float:
        """Return the mean number of records per batch; 0.0 when nothing was sent."""
        return len(self.waited_ms) / len(self.batches) if self.batches else 0.0


@attrs.define
class _Batch:
    created_ms: int
    records: list[int] = attrs.field(factory=list)
    size_bytes: int = BATCH_OVERHEAD_BYTES
    is_closed: bool = False

    def has_room(self, record_size_bytes: int, batch_size_bytes: int) -> bool:
        return not self.is_closed and self.size_bytes + record_size_bytes <= batch_size_bytes

    def is_full(self, batch_size_bytes: int) -> bool:
        return self.is_closed or self.size_bytes >= batch_size_bytes


def send_all(
    arrivals: Arrivals, leaders: tuple[BrokerId, ...], partitioner: Partitioner, options: ProducerOptions
) -> Sent:
    """Run the producer until every record is sent; `leaders` has the leader of each partition of the topic.

    Raises UsageError for a record placed on a partition that the topic has not.
    """
    producer = _Producer(arrivals, leaders, partitioner, options)
    if (arrivals.partition < UNPLACED).any() or (arrivals.partition >= len(leaders)).any():
        raise UsageError(f"a record names a partition outside 0 to {len(leaders) - 1}")
    while producer.step():
        pass
    assert (producer.waited_ms >= 0).all()
    return Sent(tuple(producer.sent), producer.request_count, producer.waited_ms)


class _Producer:
    """The accumulator's queues and the requests in flight, at one moment."""

    def __init__(
        self, arrivals: Arrivals, leaders: tuple[BrokerId, ...], partitioner: Partitioner, options: ProducerOptions
    ) -> None:
        self.arrivals = arrivals
        self.partitioner = partitioner
        self.options = options
        self.topic = TopicPartitions.all_available(len(leaders))
        self.leaders = leaders
        self.partitions_of: dict[BrokerId, list[int]] = {}
        for partition, leader in enumerate(leaders):
            self.partitions_of.setdefault(leader, []).append(partition)
        self.queues: dict[int, deque[_Batch]] = {}
        self.drain_index: dict[BrokerId, int] = {}
        self.in_flight: dict[BrokerId, int] = dict.fromkeys(self.partitions_of, 0)
        self.answers: list[tuple[int, BrokerId]] = []
        self.next_record = 0
        self.now_ms = 0
        self.sent: list[SentBatch] = []
        self.request_count = 0
        self.waited_ms = np.full(len(arrivals.time_ms), -1, np.int64)

    def step(self) -> bool:
        """Advance to the next event and handle it; return False when there is none."""
        next_ms = self._next_ms()
        if next_ms is None:
            return False
        self.now_ms = next_ms
        while self.answers and self.answers[0][0] <= self.now_ms:
            self.in_flight[heapq.heappop(self.answers)[1]] -= 1
        times = self.arrivals.time_ms
        while self.next_record < len(times) and times[self.next_record] <= self.now_ms:
            self._append(self.next_record)
            self.next_record += 1
        self._send_ready()
        return True

    def _next_ms(self) -> int | None:
        moments = [self.answers[0][0]] if self.answers else []
        if self.next_record < len(self.arrivals.time_ms):
            moments.append(int(self.arrivals.time_ms[self.next_record]))
        for partition, queue in self.queues.items():
            if queue and self.in_flight[self.leaders[partition]] < self.options.in_flight_count_max:
                moments.append(max(self.now_ms, queue[0].created_ms + self.options.linger_ms))
        return min(moments, default=None)

    def _append(self, record: int) -> None:
        size_bytes = int(self.arrivals.size_bytes[record])
        batch_size_bytes = self.options.batch_size_bytes
        partition = int(self.arrivals.partition[record])
        is_placed = partition != UNPLACED
        if not is_placed:
            chosen = self.partitioner.partition(self.topic)
            last = self._last(chosen)
            end = QueueEnd(
                has_room=last is not None and last.has_room(size_bytes, batch_size_bytes),
                is_full=last is None or last.is_full(batch_size_bytes),
            )
            partition = self.partitioner.reconsidered(self.topic, chosen, end)
        batch = self._last(partition)
        appended_bytes = size_bytes
        if batch is None or not batch.has_room(size_bytes, batch_size_bytes):
            if batch is not None:
                batch.is_closed = True
            batch = _Batch(self.now_ms)
            self.queues.setdefault(partition, deque()).append(batch)
            appended_bytes += BATCH_OVERHEAD_BYTES
        batch.records.append(record)
        batch.size_bytes += size_bytes
        if not is_placed:
            is_full = batch.is_full(batch_size_bytes)
            self.partitioner.on_appended(self.topic, SizeBytes(appended_bytes), batch_full=is_full)

    def _last(self, partition: int) -> _Batch | None:
        queue = self.queues.get(partition)
        return queue[-1] if queue else None

    def _send_ready(self) -> None:
        while True:
            self._tell_queues()
            ready = [broker for broker in self.partitions_of if self._is_ready(broker)]
            if not ready:
                return
            for broker in ready:
                self._send_request(broker)

    def _tell_queues(self) -> None:
        """Report queue sizes to the partitioner once every partition has had a batch, as Kafka's RecordAccumulator."""
        if len(self.queues) < self.topic.partition_count:
            self.partitioner.on_queues(None, (), self.topic.partition_count)
            return
        partitions = tuple(PartitionId(partition) for partition in sorted(self.queues))
        sizes = [len(self.queues[partition]) for partition in partitions]
        self.partitioner.on_queues(sizes, partitions, len(partitions))

    def _is_ready(self, broker: BrokerId) -> bool:
        if self.in_flight[broker] >= self.options.in_flight_count_max:
            return False
        return any(self._is_sendable(self.queues.get(partition)) for partition in self.partitions_of[broker])

    def _is_sendable(self, queue: deque[_Batch] | None) -> bool:
        if not queue:
            return False
        is_full = len(queue) > 1 or queue[0].is_full(self.options.batch_size_bytes)
        return is_full or self.now_ms - queue[0].created_ms >= self.options.linger_ms

    def _send_request(self, broker: BrokerId) -> None:
        partitions = self.partitions_of[broker]
        start = self.drain_index.get(broker, 0)
        size_bytes = 0
        for place in range(start, start + len(partitions)):
            index = place % len(partitions)
            self.drain_index[broker] = index
            queue = self.queues.get(partitions[index])
            if not queue:
                continue
            if size_bytes and size_bytes + queue[0].size_bytes > self.options.request_size_bytes_max:
                break
            batch = queue.popleft()
            size_bytes += batch.size_bytes
            self._leave(PartitionId(partitions[index]), batch)
        assert size_bytes, broker
        self.in_flight[broker] += 1
        self.request_count += 1
        heapq.heappush(self.answers, (self.now_ms + self.options.round_trip_ms, broker))

    def _leave(self, partition: PartitionId, batch: _Batch) -> None:
        self.waited_ms[batch.records] = self.now_ms - self.arrivals.time_ms[batch.records]
        created_ms, sent_ms = TimeMs(batch.created_ms), TimeMs(self.now_ms)
        self.sent.append(SentBatch(partition, created_ms, sent_ms, len(batch.records), SizeBytes(batch.size_bytes)))
