"""Fetch for a group's member from the leaders of its partitions, ahead of its polls.

Constraints: one request a partition is under way; records of a partition that is no longer owned are dropped. Records
are known by their offsets alone; a fetcher is at most FETCHED_COUNT_MAX of them ahead of the position.

Source: Kafka clients Fetcher and FetchCollector, 4.0.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.entropy import RandomSource
from broker.error_codes import ErrorCode
from broker.ids import NO_LEADER, BrokerId, Offset, TopicPartition
from broker.units import DurationMs, TimeMs
from log.batches.in_buffer import batches_in
from replication.groups.client.client import SubscriptionState
from replication.groups.connections import FetchNext
from replication.groups.plan import Layout
from replication.roles.messages import (
    Address,
    ConsumerFetch,
    ConsumerFetchResponse,
    MetadataRequest,
    MetadataResponse,
    NodeId,
)
from replication.roles.outbox import Outbox
from replication.simulation.clients import POLL_MS, RETRY_MS
from replication.simulation.options import Options

FETCHED_COUNT_MAX: Final = 500


@attrs.define
class _Fetched:
    """The records that have arrived of a partition, `start` to `end` (exclusive); `number` is its newest request."""

    start: Offset
    end: Offset
    number: int = 0
    leader: BrokerId = NO_LEADER
    asked: BrokerId = NO_LEADER


class Fetcher:
    """Hold one consumer's fetched records, which the consumer reads as its feed."""

    def __init__(self, options: Options, layout: Layout, entropy: RandomSource) -> None:
        self._options = options
        self._layout = layout
        self._entropy = entropy
        self._fetched: dict[int, _Fetched] = {}
        self._question = 0

    def forget(self) -> None:
        """Drop all fetched records because the consumer starts anew; answers to earlier fetches are ignored."""
        self._fetched.clear()

    def end_offset(self, partition: TopicPartition, now_ms: TimeMs) -> Offset:
        """Return the offset after the last fetched record of a partition that the consumer owns."""
        return self._fetched[self._layout.number_of(partition)].end

    def follow(self, reader: SubscriptionState, out: Outbox) -> None:
        """Fetch the partitions that the consumer owns, from its positions on; drop all other partitions."""
        positions = {self._layout.number_of(commit.partition): commit.offset for commit in reader.commits()}
        self._fetched = {number: fetched for number, fetched in self._fetched.items() if number in positions}
        for number, position in sorted(positions.items()):
            fetched = self._fetched.get(number)
            if fetched is None:
                self._fetched[number] = _Fetched(position, position)
                self._ask(number, out)
            else:
                # A partition that is given up is dropped before it can be owned again, so that its position only rises.
                assert fetched.start <= position, (fetched, position)
                fetched.start = position

    def on_due(self, due: FetchNext, out: Outbox) -> None:
        """Fetch a partition again, if the timer is the newest for it."""
        fetched = self._fetched.get(due.partition)
        if fetched is not None and fetched.number == due.number:
            self._ask(due.partition, out)

    def on_leader(self, response: MetadataResponse, out: Outbox) -> None:
        """Take a metadata response, and fetch from the leader in it."""
        fetched = self._fetched.get(response.partition)
        if fetched is None or fetched.number != response.number:
            return
        fetched.leader = response.leader
        if response.leader == NO_LEADER:
            self._wait(response.partition, fetched, RETRY_MS, out)
        else:
            self._ask(response.partition, out)

    def on_consumed(self, response: ConsumerFetchResponse, out: Outbox) -> None:
        """Take a fetch response."""
        fetched = self._fetched.get(response.partition)
        if fetched is None or fetched.number != response.number:
            return
        if response.error is ErrorCode.NONE:
            fetched.leader = fetched.asked
            for batch in batches_in(response.records):
                fetched.end = Offset(max(fetched.end, batch.last_offset + 1))
        elif response.error is ErrorCode.OFFSET_OUT_OF_RANGE:
            # What has expired is passed over, as with auto.offset.reset=earliest.
            fetched.end = max(fetched.end, response.start_offset)
        self._wait(response.partition, fetched, POLL_MS, out)

    def _ask(self, partition: int, out: Outbox) -> None:
        fetched = self._fetched[partition]
        if fetched.end - fetched.start >= FETCHED_COUNT_MAX:
            self._wait(partition, fetched, POLL_MS, out)
            return
        leader, fetched.leader = fetched.leader, NO_LEADER  # Should no answer come, the leader is asked for again.
        fetched.asked = leader
        self._wait(partition, fetched, self._options.role_settings.answer_ms_max, out)
        if leader == NO_LEADER:
            broker = NodeId(self._entropy.next_int_bound(self._options.brokers))
            out.send(Address(broker), MetadataRequest(partition, fetched.number))
        else:
            out.send(Address(NodeId(leader)), ConsumerFetch(partition, fetched.number, fetched.end))

    def _wait(self, partition: int, fetched: _Fetched, delay_ms: int, out: Outbox) -> None:
        self._question += 1
        fetched.number = self._question
        out.wake(DurationMs(delay_ms), FetchNext(partition, fetched.number))
