"""Surround one group's member with brokers of a few lines and a network that loses, repeats and delays.

What it decides: what brokers answer, which messages are lost or come twice, who leads each partition, and when records
expire, from draws.

Constraints: messages between the member and a broker keep their order. Brokers answer every probe truly, and probes
are never lost.

Source: ours; a partition has `RATE` records a second.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any, Final

import attrs

from broker.entropy import SplitMix64
from broker.error_codes import ErrorCode
from broker.group.classic import HeartbeatRequest
from broker.group.consumer import ConsumerGroupHeartbeatRequest
from broker.group.members import InstanceId
from broker.ids import NO_LEADER, BrokerId, LeaderEpoch, Offset
from broker.units import DurationMs, TimeMs
from log.batches.build import build_batch
from log.batches.build_spec import BatchSpec
from log.record import Record
from replication.groups.client.options import ClientOptions, ClientSpec
from replication.groups.client.protocols import DEFAULT_ASSIGNORS, GroupProtocol
from replication.groups.common.events import Event, EventKind
from replication.groups.connection_messages import GroupRequest, GroupResponse, ProbeResult, RequestProbe
from replication.groups.layout import Layout
from replication.groups.plan import MemberPlan
from replication.roles.messages import (
    ConsumerFetch,
    ConsumerFetchResponse,
    MetadataRequest,
    MetadataResponse,
)
from replication.simulation import quiet
from tests.replication.mutants.client_talk import erring
from tests.replication.mutants.drawing import Draws
from tests.replication.mutants.one_member import EVERY, TOPICS, OneMember

STORM_MS: Final = 60_000
CALM_MS: Final = 45_000
RATE: Final = 40
BROKER_COUNT: Final = 3
LAYOUT: Final = Layout(tuple(TOPICS.items()), 1)
OPTIONS: Final = attrs.evolve(
    quiet(1, DurationMs(STORM_MS)), brokers=BROKER_COUNT, partitions=sum(TOPICS.values()), internal_partitions=1
)
BATCH_COUNT_MAX: Final = 300
"""The records that one fetch returns at most."""
SHORT_MS: Final = 1_200
"""A pause that breaks no connection."""
_POLL_MS: Final = 500


class MemberWorld(OneMember):
    """Hold the brokers and the network of one member, whose messages `hand` takes."""

    def __init__(self, draws: Draws) -> None:
        protocol = draws.one(tuple(GroupProtocol))
        is_consumer = protocol is GroupProtocol.CONSUMER
        super().__init__(draws, draws.one((None, InstanceId("i"))), is_consumer=is_consumer)
        self._is_calm, self.is_stormy = True, True
        self.share = self.share or frozenset(draws.some(EVERY, 1))
        spec = ClientSpec(
            name="c",
            group_id="g",
            topics=tuple(TOPICS),
            assignors=(DEFAULT_ASSIGNORS[protocol],),
            instance_id=self._instance,
            options=ClientOptions(max_poll_interval_ms=DurationMs(30_000)),
        )
        self.plan = MemberPlan(spec, protocol, tuple(self._events()))
        self.entropy = SplitMix64(draws.number(0, 10**6))
        self.now_ms = 0
        self._agenda: list[tuple[int, int, int, Any]] = []
        self._count = 0
        self._last_ms: dict[tuple[bool, int], int] = {}
        self._answers: dict[tuple[int, int], GroupResponse] = {}
        self._leaders = {each: draws.number(0, BROKER_COUNT - 1) for each in range(OPTIONS.partitions)}
        self._starts = dict.fromkeys(self._leaders, 0)

    def _events(self) -> Iterator[Event]:
        """Yield a start, then anything at any time, often in the very millisecond of a poll, and at last a start."""
        draws = self._draws
        start_ms = draws.number(0, 2_000)
        yield Event(TimeMs(start_ms), EventKind.START)
        kinds = (EventKind.START, EventKind.CRASH, EventKind.CLOSE, EventKind.STALL, EventKind.FREEZE, EventKind.FREEZE)
        at_ms = draws.number(3_000, 15_000)
        while at_ms < STORM_MS - 20_000:
            if draws.is_one_in(2):
                at_ms += (start_ms - at_ms) % _POLL_MS
            for_ms = draws.one((500, SHORT_MS, SHORT_MS, 8_000, 40_000))
            yield Event(TimeMs(at_ms), draws.one(kinds), DurationMs(for_ms))
            at_ms += for_ms + draws.one((1, 1_500, 6_000, 12_000))
        yield Event(TimeMs(STORM_MS), EventKind.START)

    def high(self, partition: int) -> int:
        """Return the offset after the last committed record of a partition."""
        return self.now_ms * RATE // 1_000

    def hand(self, message: Any) -> None:
        """Take a message or a timer for the member."""
        raise NotImplementedError

    # Time and network.

    def later(self, delay_ms: int, broker: int, message: Any) -> None:
        """Bring a message to a broker after some time, or to the member, which is -1."""
        self._count += 1
        heapq.heappush(self._agenda, (self.now_ms + delay_ms, self._count, broker, message))

    def post(self, message: Any, broker: int, *, is_out: bool) -> None:
        """Send a message between the member and a broker."""
        draws = self._draws
        is_safe = not self.is_stormy or isinstance(message, RequestProbe | ProbeResult)
        for _ in range(1 if is_safe else draws.one((*[1] * 18, 0, 2))):
            at_ms = max(self.now_ms + draws.number(1, 20), self._last_ms.get((is_out, broker), 0))
            self._last_ms[is_out, broker] = at_ms
            self.later(at_ms - self.now_ms, broker if is_out else -1, message)

    def run_until(self, end_ms: int) -> None:
        """Let time pass."""
        while self._agenda and self._agenda[0][0] < end_ms and not self._told:
            at_ms, _, broker, message = heapq.heappop(self._agenda)
            if self.is_stormy and self._draws.is_one_in(150):
                self._befall()
            self.now_ms = at_ms
            if broker < 0:
                self.hand(message)
            else:
                for answer in self._served(broker, message):
                    self.post(answer, broker, is_out=False)
        self.now_ms = max(self.now_ms, end_ms)

    def _befall(self) -> None:
        """Move a leader, expire records, or give the member another share."""
        draws = self._draws
        partition = draws.one(sorted(self._leaders))
        match draws.number(0, 3):
            case 0:
                self._leaders[partition] = draws.one((NO_LEADER, 0, 1, 2))
            case 1:
                self._starts[partition] = self.high(partition)
            case 2:
                self.share, self.is_calling = frozenset(draws.some(EVERY)), True
            case _:
                self._leaders = {each: max(leader, 0) for each, leader in self._leaders.items()}

    def calm(self) -> None:
        """Let nothing go wrong any more."""
        self.is_stormy = False
        self._leaders = {each: max(leader, 0) for each, leader in self._leaders.items()}

    # Brokers.

    def _served(self, broker: int, message: Any) -> Iterator[Any]:
        match message:
            case GroupRequest():
                yield from self._grouped(broker, message)
            case RequestProbe():
                known = [self._answers.get((message.session, int(each))) for each in message.tickets]
                yield from (each for each in known if each is not None)
                yield ProbeResult(BrokerId(broker), message.session, message.tickets, frozenset())
            case MetadataRequest():
                leader = BrokerId(self._leaders[message.partition])
                yield MetadataResponse(message.partition, message.number, leader, LeaderEpoch(0))
            case ConsumerFetch():
                yield self._fetched(broker, message)

    def _grouped(self, broker: int, asked: GroupRequest) -> Iterator[GroupResponse]:
        """Take a request once, and keep its answer for probes."""
        place = (asked.session, int(asked.ticket))
        if place in self._answers:
            return
        is_beat = isinstance(asked.request, HeartbeatRequest | ConsumerGroupHeartbeatRequest)
        if is_beat and self._instance and self.is_stormy and self._draws.is_one_in(12):
            fence = ErrorCode.UNRELEASED_INSTANCE_ID if self._is_consumer else ErrorCode.FENCED_INSTANCE_ID
            response = erring(fence)(asked.request)
        else:
            response = self._answer_to(asked.request)
        answer = self._answers[place] = GroupResponse(BrokerId(broker), asked.session, asked.ticket, response)
        yield answer

    def _fetched(self, broker: int, asked: ConsumerFetch) -> ConsumerFetchResponse:
        partition, offset = asked.partition, int(asked.offset)
        start, high = self._starts[partition], self.high(partition)
        error, records = ErrorCode.NONE, b""
        if self._leaders[partition] != broker:
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        elif offset < start:
            error = ErrorCode.OFFSET_OUT_OF_RANGE
        else:
            last = min(high, offset + BATCH_COUNT_MAX) - 1
            middle = (offset + last) // 2
            records = b"".join(_batch(*pair) for pair in ((offset, middle), (middle + 1, last)) if pair[0] <= pair[1])
        return ConsumerFetchResponse(partition, asked.number, error, records, Offset(start), Offset(high))


def _batch(first: int, last: int) -> bytes:
    """Return a batch from one offset to another, as a cleaner leaves it: with its first and its last record."""
    rows = [Record(Offset(each), TimeMs(0), b"k", b"v") for each in sorted({first, last})]
    return build_batch(BatchSpec(base_offset=Offset(first)), rows)
