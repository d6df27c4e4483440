"""Serve Produce, Fetch, ListOffsets, OffsetForLeaderEpoch and InitProducerId.

A fetch waits until min.bytes are there, an error, or max.wait is over; data below the high watermark count, and below
the last stable offset for a consumer that reads committed transactions only.

Source: Kafka core KafkaApis.handleProduceRequest, handleFetchRequest; ReplicaManager.fetchMessages and
fetchOffset; DelayedFetch; 4.4.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.errors import BrokersideError
from broker.ids import BrokerId, LeaderEpoch, Offset
from log.batches.in_buffer import batches_in
from log.codecs.compression import Codec
from log.partition.reading import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    Isolation,
)
from replication.roles.messages import ProduceResponse
from replication.roles.outbox import Outbox
from replication.roles.replica_log import ReplicaLog
from replication.rules.epochs import epoch_at
from replication.rules.fetch import check_leader_epoch
from replication.rules.follower_read import check_consumer_fetch, latest_offset, preferred_replica
from replication.rules.partition import UNKNOWN_EPOCH, FollowerState, LeaderState
from replication.rules.produce import ACKS_ALL
from replication.rules.truncation import answer_epoch_end
from replication.testing.gateway import Call, Gateway, Values, in_ms

_ACKS: Final = (0, 1, ACKS_ALL)
_UNKNOWN: Final = -1
_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_SHOWS_START: Final = (
    ErrorCode.INVALID_TIMESTAMP,
    ErrorCode.INVALID_RECORD,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.NOT_ENOUGH_REPLICAS,
)
"""The errors of a write whose response shows the start of the log."""
_FETCH_BYTES_MAX: Final = 55 << 20
"""The largest response to a fetch: fetch.max.bytes by default."""
_MAGIC: Final = 2
_ZSTD_SINCE: Final = 7
"""The version of Produce since which batches may be compressed with zstd (KIP-110)."""
_FOLLOWERS_SINCE: Final = 11
"""The version of Fetch since which consumers read from followers (KIP-392)."""
_SPECIAL_TIMES_SINCE: Final = {
    LATEST_TIMESTAMP: 1,
    EARLIEST_TIMESTAMP: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL_TIMESTAMP: 8,
    LATEST_TIERED_TIMESTAMP: 9,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP: 11,
}
"""The version of ListOffsets since which a negative timestamp asks for a special offset."""


# Produce.


@attrs.define
class _Produce:
    """Gather the responses of a Produce request's partitions."""

    call: Call
    missing: int
    topics: dict[str, list[dict[str, object]]] = attrs.field(factory=dict)
    leaders: set[BrokerId] = attrs.field(factory=set)
    notes: list[Callable[[], None]] = attrs.field(factory=list)
    """Functions that note the acknowledgement of each accepted batch."""

    def point_to_leader(self, number: int, values: dict[str, object]) -> None:
        """Name the leader that this broker knows in a refused partition's response (KIP-951)."""
        state = self.call.gateway.broker.image.partitions.get(number)
        if state is not None and state.leader in self.call.gateway.shared.endpoints:
            values["current_leader"] = {"leader_id": state.leader, "leader_epoch": state.leader_epoch}
            self.leaders.add(state.leader)

    def add(self, topic: str, values: dict[str, object], out: Outbox) -> None:
        """Take one partition's response, and answer when it is the last."""
        self.topics.setdefault(topic, []).append(values)
        self.missing -= 1
        if not self.missing:
            self.finish(out)

    def finish(self, out: Outbox) -> None:
        """Answer; a write with acks=0 has no response."""
        listed = [{"name": name, "partition_responses": values} for name, values in self.topics.items()]
        if self.call.request.body.acks != 0:
            endpoints = self.call.gateway.shared.endpoints
            nodes = [endpoints[each].shown(each) for each in sorted(self.leaders)]
            self.call.answer({"responses": listed, "node_endpoints": nodes}, out, self.notes)
        elif any(each["error_code"] is not ErrorCode.NONE for values in self.topics.values() for each in values):
            self.call.end_connection(out)
        else:
            self.call.answer(None, out)


def produce(call: Call, out: Outbox) -> None:
    """Append the batches of each partition; answer when the last is committed, or as acks say."""
    body = call.request.body
    # Of a partition that is named twice, the last batches count.
    asked = {(topic.name, each.index): each.records for topic in body.topic_data for each in topic.partition_data}
    gathered = _Produce(call, len(asked))
    if not asked:
        gathered.finish(out)
    for place, records in asked.items():
        _append(call, gathered, place, bytes(records or b""), out)


def _append(call: Call, gathered: _Produce, place: tuple[str, int], records: bytes, out: Outbox) -> None:
    gateway, acks, (name, index) = call.gateway, call.request.body.acks, place
    number = gateway.topics.number_of(name, index)
    note = None if number is None else gateway.shared.note_write(number, acks, records)
    end = _end(gateway, number)

    def done(response: ProduceResponse, out: Outbox) -> None:
        if note is not None and response.error is ErrorCode.NONE:
            gathered.notes.append(partial(note, response.offset, _epoch(gateway, number, response.offset)))
        values = _produced(index, response.error, response.offset, _start(gateway, number))
        if response.error is ErrorCode.NONE and response.offset < end:
            # A batch that was there before is answered with its timestamp (UnifiedLog.append).
            last_ms = max(each.max_timestamp for each in batches_in(records))
            values["log_append_time"] = _EPOCH + timedelta(milliseconds=last_ms)
        gathered.add(name, values, out)

    wrong = _malformed(records, call.request.version)
    if number is None:
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    elif wrong is not ErrorCode.NONE:
        error = wrong
    elif acks not in _ACKS:
        error = ErrorCode.INVALID_REQUIRED_ACKS
    else:
        error = gateway.append(number, records, acks, done, out)
    if error is not ErrorCode.NONE or acks == 0:
        start = _start(gateway, number) if wrong is ErrorCode.NONE and error in _SHOWS_START else _UNKNOWN
        values = _produced(index, error, _UNKNOWN, start)
        if error is ErrorCode.NOT_LEADER_OR_FOLLOWER and number is not None:
            gathered.point_to_leader(number, values)
        gathered.add(name, values, out)


def _malformed(records: bytes, version: int) -> ErrorCode:
    """Return the error of what is not one batch of magic 2, or is compressed as the version does not know."""
    try:
        batches = list(batches_in(records))
    except BrokersideError:
        return ErrorCode.NONE  # The log says what is wrong.
    if len(batches) != 1 or batches[0].magic != _MAGIC:
        return ErrorCode.INVALID_RECORD
    is_late = batches[0].codec is Codec.ZSTD and version < _ZSTD_SINCE
    return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE if is_late else ErrorCode.NONE


def _start(gateway: Gateway, number: int | None) -> int:
    found = gateway.replica(number)
    return _UNKNOWN if isinstance(found, ErrorCode) else found[1].state.start_offset


def _epoch(gateway: Gateway, number: int | None, offset: Offset) -> LeaderEpoch:
    found = gateway.replica(number)
    return UNKNOWN_EPOCH if isinstance(found, ErrorCode) else epoch_at(found[1].state.epochs, offset)


def _end(gateway: Gateway, number: int | None) -> Offset:
    found = gateway.replica(number)
    return Offset(0) if isinstance(found, ErrorCode) else found[1].log.log_end_offset


def _produced(index: int, error: ErrorCode, offset: int, start_offset: int) -> dict[str, object]:
    is_known = error in (ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
    return {
        "index": index,
        "error_code": error,
        "base_offset": offset if is_known else _UNKNOWN,
        "log_start_offset": start_offset,
    }


def init_producer_id(call: Call, out: Outbox) -> None:
    """Give out a new producer id; transactions are refused."""
    body = call.request.body
    if body.transactional_id is not None:
        values: Values = {"error_code": ErrorCode.UNSUPPORTED_VERSION, "producer_id": -1, "producer_epoch": -1}
    elif (getattr(body, "producer_id", -1) < 0) is not (getattr(body, "producer_epoch", -1) < 0):
        values = {"error_code": ErrorCode.INVALID_REQUEST, "producer_id": -1, "producer_epoch": -1}
    else:
        values = {"producer_id": call.gateway.topics.next_producer_id(), "producer_epoch": 0}
    call.answer(values, out)


# Fetch.


@attrs.frozen
class _Wanted:
    """Hold one partition of a fetch; `number` is None if there is no such partition."""

    topic: str
    index: int
    number: int | None
    offset: Offset
    epoch: LeaderEpoch
    bytes_max: int


@attrs.define
class _Fetch:
    """Hold a fetch that waits for data; `seen` is the state of its partitions when it was last tried in vain."""

    call: Call
    wanted: tuple[_Wanted, ...]
    isolation: Isolation
    rack: str
    seen: list[object] = attrs.field(factory=list)

    def is_done(self, out: Outbox) -> bool:
        """Answer if there are min.bytes to send, or an error."""
        roles = self.call.gateway.broker.roles
        seen: list[object] = [
            None if (role := roles.get(each.number)) is None else (role.state.leader_epoch, role.log.state)
            for each in self.wanted
            if each.number is not None
        ]
        if seen and seen == self.seen:
            return False
        self.seen = seen
        size_bytes = 0
        for wanted in self.wanted:
            there = _readable_bytes(self.call, wanted, self.isolation)
            if there is None:
                break
            size_bytes += there
        else:
            if size_bytes < self.call.request.body.min_bytes:
                return False
        self.expire(out)
        return True

    def expire(self, out: Outbox) -> None:
        """Answer with what there is."""
        left = whole = min(self.call.request.body.max_bytes, _FETCH_BYTES_MAX)
        topics: dict[str, list[Values]] = {}
        for wanted in self.wanted:
            values = self._read(wanted, left, is_first=left == whole)
            records = values["records"]
            assert isinstance(records, bytes), records
            left -= len(records)
            topics.setdefault(wanted.topic, []).append(values)
        self.call.answer(
            {"responses": [{"topic": topic, "partitions": values} for topic, values in topics.items()]}, out
        )

    def _read(self, wanted: _Wanted, left: int, *, is_first: bool) -> dict[str, object]:
        """Return one partition's response; a batch larger than the limit is sent if nothing was sent before it."""
        found = _state_and_log(self.call, wanted)
        if isinstance(found, ErrorCode):
            return _fetched(wanted.index, found)
        state, log = found
        values = _fetched(wanted.index, ErrorCode.NONE, log)
        moment, settings = self.call.gateway.moment(self.call.now_ms), self.call.gateway.broker.role_settings.settings
        if isinstance(state, LeaderState):
            preferred = preferred_replica(state, wanted.offset, self.rack, moment, settings.rules)
            if preferred is not None:
                return {**values, "preferred_read_replica": preferred}
        bytes_max = max(min(wanted.bytes_max, left), 0)
        if bytes_max or is_first:
            values["aborted_transactions"] = None if self.isolation is Isolation.HIGH_WATERMARK else []
            read = log.log.read(wanted.offset, bytes_max, isolation=self.isolation, min_one_message=is_first)
            values["records"] = bytes(read.records)
        return values


def fetch(call: Call, out: Outbox) -> None:
    """Answer a consumer's fetch, or hold it until there is enough, at most max.wait."""
    body = call.request.body
    wanted = tuple(
        _Wanted(
            topic.topic,
            each.partition,
            call.gateway.topics.number_of(topic.topic, each.partition),
            Offset(each.fetch_offset),
            LeaderEpoch(getattr(each, "current_leader_epoch", -1)),
            each.partition_max_bytes,
        )
        for topic in body.topics
        for each in topic.partitions
    )
    isolation = Isolation.COMMITTED if body.isolation_level == 1 else Isolation.HIGH_WATERMARK
    waiting = _Fetch(call, wanted, isolation, getattr(body, "rack_id", ""))
    call.gateway.wait(waiting, in_ms(body.max_wait), out)


def _state_and_log(call: Call, wanted: _Wanted) -> tuple[LeaderState | FollowerState, ReplicaLog] | ErrorCode:
    """Return a partition's replica here, or the error that a consumer gets."""
    gateway = call.gateway
    found = gateway.replica(wanted.number)
    if isinstance(found, ErrorCode):
        return found
    state, log = found
    rules = gateway.broker.role_settings.settings.rules
    error = check_leader_epoch(state, wanted.epoch, rules)
    is_refused_here = call.request.version < _FOLLOWERS_SINCE and not isinstance(state, LeaderState)
    if error is ErrorCode.NONE and is_refused_here:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if error is ErrorCode.NONE or (error is ErrorCode.NOT_LEADER_OR_FOLLOWER and not is_refused_here):
        error = check_consumer_fetch(state, log.state, wanted.offset, rules)
    return found if error is ErrorCode.NONE else error


def _readable_bytes(call: Call, wanted: _Wanted, isolation: Isolation) -> int | None:
    """Return about how many bytes a partition has for a consumer; None if the fetch is to be answered now."""
    found = _state_and_log(call, wanted)
    if isinstance(found, ErrorCode):
        return None
    _, log = found
    end_offset = log.log.last_stable_offset if isolation is Isolation.COMMITTED else log.state.high_watermark
    if wanted.offset >= end_offset:
        return 0
    if call.request.body.min_bytes <= 1:
        return 1  # Any byte is enough; the response reads them.
    return len(log.log.read(wanted.offset, wanted.bytes_max, isolation=isolation).records)


def _fetched(index: int, error: ErrorCode, log: ReplicaLog | None = None) -> dict[str, object]:
    values: dict[str, object] = {
        "partition_index": index,
        "error_code": error,
        "high_watermark": _UNKNOWN,
        "records": b"",
        "aborted_transactions": [] if error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else None,
    }
    if log is not None:
        values["high_watermark"] = log.state.high_watermark
        values["last_stable_offset"] = log.log.last_stable_offset
        values["log_start_offset"] = log.state.start_offset
    return values


# Offsets and epochs.


def list_offsets(call: Call, out: Outbox) -> None:
    """Answer with the earliest or latest offset, or the first at or after a time, of each partition."""
    topics = [
        {"name": topic.name, "partitions": [_listed(call, topic.name, each) for each in topic.partitions]}
        for topic in call.request.body.topics
    ]
    call.answer({"topics": topics}, out)


def _listed(call: Call, topic: str, each: object) -> Mapping[str, object]:
    index, timestamp = getattr(each, "partition_index", 0), getattr(each, "timestamp", 0)
    epoch = LeaderEpoch(getattr(each, "current_leader_epoch", -1))
    gateway = call.gateway
    if timestamp < 0 and call.request.version < _SPECIAL_TIMES_SINCE.get(timestamp, call.request.version + 1):
        return {"partition_index": index, "error_code": ErrorCode.UNSUPPORTED_VERSION}
    found = gateway.replica(gateway.topics.number_of(topic, index))
    if isinstance(found, ErrorCode):
        return {"partition_index": index, "error_code": found}
    state, log = found
    rules = gateway.broker.role_settings.settings.rules
    error = check_leader_epoch(state, epoch, rules)
    if error is not ErrorCode.NONE:
        return {"partition_index": index, "error_code": error}
    assert isinstance(state, LeaderState), state
    error, end_offset = latest_offset(state, log.state, rules)
    if error is not ErrorCode.NONE:
        return {"partition_index": index, "error_code": error}
    if getattr(call.request.body, "isolation_level", 0) == 1:
        end_offset = log.log.last_stable_offset
    return {"partition_index": index, **_offset_at(log, timestamp, end_offset)}


def _offset_at(log: ReplicaLog, timestamp_ms: int, end_offset: Offset) -> Mapping[str, object]:
    """Return the offset for a time; none at or above `end_offset` is shown."""
    epochs = log.state.epochs
    if timestamp_ms == LATEST_TIMESTAMP:
        return {"offset": end_offset, "leader_epoch": epochs[-1].epoch if epochs else _UNKNOWN}
    if timestamp_ms in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
        return {"offset": log.state.start_offset, "leader_epoch": epochs[0].epoch if epochs else _UNKNOWN}
    found = log.log.fetch_offset_by_timestamp(timestamp_ms)
    if found is None or found.offset >= end_offset:
        return {}
    epoch = _UNKNOWN if found.leader_epoch is None else found.leader_epoch
    return {"offset": found.offset, "timestamp": found.timestamp_ms, "leader_epoch": epoch}


def offset_for_leader_epoch(call: Call, out: Outbox) -> None:
    """Answer with the end offset of a leader epoch of each partition (KIP-320)."""
    topics = [
        {"topic": topic.topic, "partitions": [_epoch_end(call, topic.topic, each) for each in topic.partitions]}
        for topic in call.request.body.topics
    ]
    call.answer({"topics": topics}, out)


def _epoch_end(call: Call, topic: str, each: object) -> Mapping[str, object]:
    index = getattr(each, "partition", 0)
    asked = LeaderEpoch(getattr(each, "leader_epoch", -1))
    believed = LeaderEpoch(getattr(each, "current_leader_epoch", -1))
    gateway = call.gateway
    found = gateway.replica(gateway.topics.number_of(topic, index))
    if isinstance(found, ErrorCode):
        return {"partition": index, "error_code": found}
    state, log = found
    error, end = answer_epoch_end(state, log.state, asked, believed, gateway.broker.role_settings.settings.rules)
    return {"partition": index, "error_code": error, "leader_epoch": end.epoch, "end_offset": end.end_offset}
