"""Host the group coordinator on a broker: one shard per partition of `__consumer_offsets` that the broker leads.

A new epoch of the same leader keeps a shard. FindCoordinator is answered from the broker's own metadata. Timers run on
monotonic time, as Kafka's do: a jump of the broker's clock ends no session.

Source: Kafka GroupCoordinatorService, CoordinatorRuntime.scheduleLoadOperation and scheduleUnloadOperation,
KafkaApis.handleFindCoordinatorRequest; 4.3.1.
"""

from __future__ import annotations

from typing import Protocol

import attrs

from broker.clock import Clock
from broker.entropy import RandomSource
from broker.error_codes import ErrorCode
from broker.group.classic import Ticket
from broker.group.messages import FindCoordinatorRequest, FindCoordinatorResponse
from broker.group.service import Request as ServiceRequest
from broker.group.service import Response as ServiceResponse
from broker.group.service import ServiceOptions
from broker.ids import NO_LEADER, BrokerId, LeaderEpoch
from broker.units import DurationMs, TimeMs
from replication.groups.client.messages import Request, Response, TopicMetadataRequest, TopicMetadataResponse
from replication.groups.connections import BrokerEnds, Caller, GroupRequest, RequestProbe, ShardDue, ShardRead
from replication.groups.shard import Shard, refusal
from replication.roles.hosted import Host
from replication.roles.messages import Address, Message, ProduceResponse
from replication.roles.outbox import Outbox

_NO_TICKET = Ticket(0)


class OffsetsLayout(Protocol):
    """Define which partitions are those of `__consumer_offsets`, and which of them stores a group."""

    def is_internal(self, number: int) -> bool:
        """Return whether a number is that of a partition of `__consumer_offsets`."""
        ...

    def of_group(self, group_id: str) -> int:
        """Return the number of the partition of `__consumer_offsets` that stores a group."""
        ...


@attrs.frozen(kw_only=True)
class HostedRoleOptions:
    """Hold the settings of every broker's coordinator; reading a partition takes up to `load_ms_max`."""

    layout: OffsetsLayout
    service: ServiceOptions
    load_ms_max: DurationMs
    wall_clock_ms: int
    """The value at which steady time begins, so that it looks like a time of day."""


class HostedCoordinator:
    """Host one broker's coordinator."""

    def __init__(self, host: Host, options: HostedRoleOptions, clock: Clock, entropy: RandomSource) -> None:
        self.host = host
        self.shards: dict[int, Shard] = {}
        self.options = options
        self._clock = clock
        self._entropy = entropy
        self._ends = BrokerEnds(host.broker)
        self._shard_count = 0

    @property
    def broker(self) -> BrokerId:
        """Return the broker that hosts this role."""
        return self.host.broker

    def handle(self, message: Message, sender: Address, now_ms: TimeMs, out: Outbox) -> None:
        """Take a message from a client, or a timer of a shard."""
        if isinstance(message, GroupRequest):
            caller = self._ends.take(message, sender)
            if caller is not None:
                self._on_asked(caller, message.group_id, message.request, out)
        elif isinstance(message, RequestProbe):
            self._ends.probe(message, sender, out)
        elif isinstance(message, ProduceResponse | ShardDue | ShardRead):
            shard = self.shards.get(message.partition)
            if shard is not None:
                self._on_shard_message(shard, message, out)

    def has_read(self, read: ShardRead) -> bool:
        """Return whether the shard that read its partition still coordinates; another may have taken its place."""
        shard = self.shards.get(read.partition)
        return shard is not None and shard.number == read.number

    def on_gained(self, partition: int, leader_epoch: LeaderEpoch, now_ms: TimeMs, out: Outbox) -> None:
        """Begin to read a partition that the broker now leads, unless it is being read already."""
        if not self.options.layout.is_internal(partition) or partition in self.shards:
            return
        self._shard_count += 1
        number = self._shard_count
        options = self.options
        topics = options.service.context.topics
        self.shards[partition] = Shard(partition, number, options.service, topics, self._entropy, self._ends.answer)
        delay_ms = 1 + self._entropy.next_int_bound(options.load_ms_max)
        out.wake(DurationMs(delay_ms), ShardRead(partition, number))

    def on_lost(self, partition: int, now_ms: TimeMs, out: Outbox) -> None:
        """Drop the groups of a partition that the broker no longer leads."""
        shard = self.shards.pop(partition, None)
        if shard is not None:
            shard.close(self._now_ms, out)

    @property
    def _now_ms(self) -> TimeMs:
        return TimeMs(self.options.wall_clock_ms + self._clock.now_ms())

    def _on_shard_message(self, shard: Shard, message: ProduceResponse | ShardDue | ShardRead, out: Outbox) -> None:
        if isinstance(message, ProduceResponse):
            shard.on_produced(self.host, message, self._now_ms, out)
        elif isinstance(message, ShardDue):
            shard.on_due(self.host, message, self._now_ms, out)
        elif message.number == shard.number:
            shard.load(self.host, self._now_ms, out)

    def _on_asked(self, caller: Caller, group_id: str, request: Request, out: Outbox) -> None:
        if isinstance(request, FindCoordinatorRequest):
            self._ends.answer(caller, self._found(request.group_id), out)
        elif isinstance(request, TopicMetadataRequest):
            self._ends.answer(caller, self._topics(request), out)
        else:
            self._on_group_request(caller, group_id, request, out)

    def _on_group_request(self, caller: Caller, group_id: str, request: ServiceRequest, out: Outbox) -> None:
        shard = self.shards.get(self.options.layout.of_group(group_id))
        if shard is None:
            response: ServiceResponse = refusal(request, _NO_TICKET, ErrorCode.NOT_COORDINATOR)
            self._ends.answer(caller, response, out)
        else:
            shard.handle(self.host, (caller, group_id, request), self._now_ms, out)

    def _found(self, group_id: str) -> Response:
        known = self.host.image.partitions.get(self.options.layout.of_group(group_id))
        if known is None or known.leader == NO_LEADER:
            return FindCoordinatorResponse(error=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return FindCoordinatorResponse(known.leader)

    def _topics(self, ask: TopicMetadataRequest) -> Response:
        counts = self.options.service.context.topics
        return TopicMetadataResponse({topic: counts[topic] for topic in ask.topics if topic in counts})
