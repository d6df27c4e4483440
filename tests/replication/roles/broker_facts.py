"""Facts about one broker: its partitions, whose requests wait, and what it has asked.

By plain facts of a partition they say what answer each request gets, and when; a step of the broker owes a list of
`Said`. Nothing here asks the roles; the high watermark, which the rules decide, is read from the broker.

Source: Kafka's ReplicaManager, Partition, DelayedFetch and DelayedProduce as facts; KIP-112, 207, 320, 497, 595.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, Final

import attrs

from broker.error_codes import ErrorCode
from broker.ids import BrokerId
from replication.roles.messages import (
    Address,
    AlterPartition,
    BrokerHeartbeat,
    ConsumerFetch,
    ConsumerFetchResponse,
    Fetch,
    FetchResponse,
    ListOffsets,
    Message,
    MetadataRequest,
    OffsetsForLeaderEpoch,
    Produce,
    ProduceResponse,
)
from replication.rules.partition import PartitionState

OWN: Final = BrokerId(0)
MIN_ISR: Final = 2


class Place(Enum):
    """List what the last epoch that a follower has says of its log and its leader's."""

    KNOWN = "KNOWN"
    """They are alike up to where it fetches; or it names no epoch."""
    PARTED = "PARTED"
    """They are not, and the leader says where they part."""
    UNKNOWN = "UNKNOWN"
    """The leader cannot tell."""


@attrs.frozen
class Said:
    """Hold one message with what matters in it: to whom, of which kind, and its fields."""

    to: int
    kind: str
    partition: int
    fields: tuple[Any, ...]


@attrs.define
class Part:
    """Hold one partition: its state, None before it is there or when it is deleted, and who waits for this broker."""

    number: int
    state: PartitionState | None = None
    is_foreign: bool = False
    """Whether the log on disk is of another topic."""
    is_lost: bool = False
    is_unusable: bool = False
    """Whether it was found out that the log on disk is of another topic."""
    is_open: bool = False
    start: int = 0
    end: int = 0
    epoch_start: int = 0
    """Where the log ended as this broker learned that it leads in this epoch."""
    held: dict[BrokerId, Fetch] = attrs.field(factory=dict)
    waiting: dict[tuple[int, int], int] = attrs.field(factory=dict)
    """The offsets of writes that wait to be committed, by client and number."""
    role: str = ""
    """What a follower does: "fetching", "placing", "parked" or "leaderless"; "" if this broker is none."""
    asked: int = 0
    """The number of a follower's last request."""

    @property
    def is_held(self) -> bool:
        """Return whether this broker has a replica that it serves."""
        is_gone = self.is_lost or self.is_foreign
        return self.state is not None and OWN in self.state.replicas and not is_gone

    @property
    def is_led(self) -> bool:
        """Return whether this broker leads."""
        return self.is_held and self.state is not None and self.state.leader == OWN

    @property
    def epoch(self) -> int:
        """Return the leader epoch."""
        return -1 if self.state is None else self.state.leader_epoch

    def absence(self) -> ErrorCode:
        """Return why this broker does not answer as the leader."""
        if self.is_lost:
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if self.state is None else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def epoch_error(self, believed: int) -> ErrorCode:
        """Return the error for who believes in another leader epoch, else that of who does not lead."""
        if believed not in (-1, self.epoch):
            return ErrorCode.FENCED_LEADER_EPOCH if believed < self.epoch else ErrorCode.UNKNOWN_LEADER_EPOCH
        return ErrorCode.NONE if self.is_led else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def place(self, fetch: Fetch, starts: Mapping[int, int]) -> Place:
        """Return what the last epoch that a follower has says of its log; `starts` has where each epoch begins."""
        offset, last = fetch.request.offset, fetch.request.last_fetched_epoch
        if last < 0:
            return Place.KNOWN
        ends = [start for epoch, start in starts.items() if epoch > last]
        if (not ends and last not in starts) or offset < self.start:
            return Place.UNKNOWN
        largest = max((epoch for epoch in starts if epoch <= last), default=last)
        return Place.PARTED if largest < last or min(ends, default=self.end) < offset else Place.KNOWN

    def fetch_error(self, fetch: Fetch, place: Place = Place.KNOWN) -> ErrorCode:
        """Return the error that answers a follower's fetch."""
        error = self.epoch_error(fetch.request.leader_epoch) if self.is_held else self.absence()
        if error is ErrorCode.NONE and self.state is not None:
            if fetch.request.replica not in self.state.replicas:
                knows = fetch.request.leader_epoch >= 0
                return ErrorCode.UNKNOWN_LEADER_EPOCH if knows else ErrorCode.NOT_LEADER_OR_FOLLOWER
            is_outside = not self.start <= fetch.request.offset <= self.end
            if place is Place.UNKNOWN or (place is Place.KNOWN and is_outside):
                return ErrorCode.OFFSET_OUT_OF_RANGE
        return error

    def of_fetch(self, fetch: Fetch, error: ErrorCode) -> Said:
        """Return the answer to a fetch."""
        first = fetch.request.offset if error is ErrorCode.NONE and fetch.request.offset < self.end else None
        return Said(fetch.request.replica, "FetchResponse", self.number, (fetch.number, error, first))

    def of_write(self, client: int, number: int, error: ErrorCode, offset: int | None, *, appended: bool) -> Said:
        """Return the answer to a write."""
        fields = (number, error, -1 if offset is None else offset, appended)
        return Said(client, "ProduceResponse", self.number, fields)

    def dropped(self) -> None:
        """Forget the log, which is deleted."""
        self.start = self.end = 0
        self.is_open, self.role = False, ""

    def on_fetch(self, fetch: Fetch, place: Place) -> Iterator[Said]:
        """Yield the answer to a fetch, unless it waits for records: who has to cut its log is told so at once."""
        error = self.fetch_error(fetch, place)
        if self.is_led:
            self.held.pop(fetch.request.replica, None)
        if error is ErrorCode.NONE and place is Place.PARTED:
            yield Said(fetch.request.replica, "FetchResponse", self.number, (fetch.number, error, None))
        elif error is ErrorCode.NONE and fetch.request.offset == self.end:
            self.held[fetch.request.replica] = fetch
        else:
            yield self.of_fetch(fetch, error)

    def on_expired(self, number: int, follower: BrokerId) -> Iterator[Said]:
        """Yield the answer to a fetch whose time is over."""
        fetch = self.held.get(follower)
        if fetch is not None and fetch.number == number:
            del self.held[follower]
            yield self.of_fetch(fetch, self.fetch_error(fetch))

    def on_produce(self, write: Produce, client: int) -> Iterator[Said]:
        """Yield the answer to a write, unless it waits, and those to the fetches that waited for it."""
        if not self.is_led:
            if write.acks != 0:
                yield self.of_write(client, write.number, self.absence(), None, appended=False)
            return
        assert self.state is not None
        few = write.acks == -1 and len(self.state.isr) < min(MIN_ISR, len(self.state.replicas))
        refused = ErrorCode.NOT_ENOUGH_REPLICAS if few else None
        if write.acks not in (-1, 0, 1):
            refused = ErrorCode.INVALID_REQUIRED_ACKS
        if refused is not None:
            yield self.of_write(client, write.number, refused, None, appended=False)
            return
        if write.acks == 1:
            yield self.of_write(client, write.number, ErrorCode.NONE, self.end, appended=True)
        elif write.acks == -1:
            self.waiting[client, write.number] = self.end
        self.end += 1
        for follower, fetch in list(self.held.items()):
            del self.held[follower]
            yield self.of_fetch(fetch, self.fetch_error(fetch))

    def committed(self, high_watermark: int, counted: int) -> Iterator[Said]:
        """Yield the answers to writes that are committed now; `counted` is the size of the ISR that counts."""
        assert self.state is not None
        is_few = counted < min(MIN_ISR, len(self.state.replicas))
        error = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND if is_few else ErrorCode.NONE
        for (client, number), offset in list(self.waiting.items()):
            if offset < high_watermark:
                del self.waiting[client, number]
                yield self.of_write(client, number, error, offset, appended=True)

    def ended(self, error: ErrorCode, new_epoch: int | None = None) -> Iterator[Said]:
        """Yield the answers to all who wait as this broker leads no more; `new_epoch` is known if another may lead."""
        for fetch in self.held.values():
            is_former = new_epoch is not None and fetch.request.leader_epoch < new_epoch
            code = ErrorCode.FENCED_LEADER_EPOCH if is_former else error
            yield Said(fetch.request.replica, "FetchResponse", self.number, (fetch.number, code, None))
        for (client, number), offset in self.waiting.items():
            yield self.of_write(client, number, error, offset, appended=True)
        self.held.clear()
        self.waiting.clear()

    def on_question(self, message: Message, client: int, high_watermark: int) -> Iterator[Said]:
        """Yield the answer to a question that changes nothing."""
        if isinstance(message, OffsetsForLeaderEpoch):
            error = self.epoch_error(message.believed) if self.is_led else self.absence()
            yield Said(client, "OffsetsForLeaderEpochResponse", self.number, (message.number, error))
        elif isinstance(message, ListOffsets):
            error, bounds = self.absence(), (-1, -1)
            if self.is_led:
                error, bounds = self.epoch_error(message.believed), (self.start, self.end)
                if message.is_of_client:
                    is_unsure = self.epoch_start > high_watermark
                    error = ErrorCode.OFFSET_NOT_AVAILABLE if is_unsure else ErrorCode.NONE
                    bounds = (self.start, -1 if is_unsure else high_watermark)
            yield Said(client, "ListOffsetsResponse", self.number, (message.number, error, *bounds))
        elif isinstance(message, ConsumerFetch):
            error = ErrorCode.NONE if self.is_held else self.absence()
            if self.is_held and not self.start <= message.offset <= self.end:
                error = ErrorCode.OFFSET_OUT_OF_RANGE
            elif self.is_held and not self.is_led and message.offset > high_watermark:
                error = ErrorCode.OFFSET_NOT_AVAILABLE
            is_read = error is ErrorCode.NONE and message.offset < high_watermark
            first, bounds = message.offset if is_read else None, (-1, -1)
            if self.is_held:
                bounds = (self.start, high_watermark)
            fields = (message.number, error, first, *bounds)
            yield Said(client, "ConsumerFetchResponse", self.number, fields)
        elif isinstance(message, MetadataRequest):
            leader = -1 if self.state is None else self.state.leader
            yield Said(client, "MetadataResponse", self.number, (message.number, leader, self.epoch))


def first_offset(records: bytes) -> int | None:
    """Return the base offset of the first of some batches."""
    return int.from_bytes(records[:8], "big") if records else None


def said(receiver: Address, message: Message) -> Said:
    """Return what matters in a message that a broker sends."""
    fields: tuple[Any, ...]
    match message:
        case FetchResponse():
            fields = (message.number, message.answer.error, first_offset(message.records))
        case ProduceResponse():
            fields = (message.number, message.error, message.offset, message.appended)
        case ConsumerFetchResponse():
            bounds = (message.start_offset, message.high_watermark)
            fields = (message.number, message.error, first_offset(message.records), *bounds)
        case BrokerHeartbeat():
            fields = (message.broker, message.epoch, message.offline)
        case Fetch():
            fields = (message.request,)
        case ListOffsets():
            fields = (message.believed,)
        case AlterPartition():
            fields = (message.request,)
        case _:
            names = ("number", "error", "start_offset", "end_offset", "leader", "leader_epoch")
            fields = tuple(getattr(message, name) for name in names if hasattr(message, name))
    return Said(receiver.node, type(message).__name__, getattr(message, "partition", -1), fields)
