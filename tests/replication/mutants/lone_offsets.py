"""Commit offsets of groups at random, and write their records byte by byte, apart from the code that reads them.

What it decides: commits, transactions that end, deletions and time, from a seed, against a list of all that was
applied; and records of every version, subscriptions and assignments, packed here by their field lists.

Constraints: the bytes are made with `struct` alone. Whoever reads a record that is cut short, or that goes on behind
its end, must refuse it.

Source: OffsetMetadataManager and OffsetExpirationConditionImpl (KIP-211); OffsetCommitKey and -Value, GroupMetadataKey
and -Value, ConsumerProtocolSubscription and -Assignment in Kafka 4.3.1's message definitions; Utils.abs.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, Final

from broker.errors import CorruptDataError
from broker.group.members import GroupRecord, InstanceId, MemberId, StoredMember
from broker.group.offsets import Commit, CommittedOffsets, ExpiryRule, OffsetOptions
from broker.group.protocol import (
    Subscription,
    read_assignment,
    read_sticky_memory,
    read_subscription,
    sticky_memory,
    write_assignment,
)
from broker.group.records import (
    CommittedOffset,
    GroupKey,
    OffsetKey,
    OtherKey,
    read_committed_offset,
    read_group,
    read_key,
    write_group,
)
from broker.group.routing import offsets_partition
from broker.ids import LeaderEpoch, Offset, PartitionId, ProducerId, TopicPartition
from broker.units import DurationMs, SizeBytes, TimeMs
from tests.replication.mutants.consumer_bytes import consumer_records
from tests.replication.mutants.drawing import Draws

STEP_COUNT: Final = 40
RECORDS_A_RUN: Final = 8
RETENTION_MS: Final = 1_000
_STREAM: Final = 26
_GROUPS: Final = ("g", "h")
_TEXTS: Final = ("", "a", "é", "x" * 130, "\U0001d11e")
_LONGEST: Final = 3
"""The longest metadata that is kept, in UTF-16 units."""


def offsets_noticed(seed: int) -> str:
    """Return what offsets or records of a run are not as the list and the field lists say, "" if all are."""
    draws = Draws(seed, _STREAM)
    told = _Table(draws).run()
    for _ in range(RECORDS_A_RUN):
        told = told or next(
            (
                each
                for check in (_keys, _values, _groups, _consumers, consumer_records, _routes)
                for each in check(draws)
            ),
            "",
        )
    return told


class _Table:
    """Hold committed offsets, and the list of what was applied."""

    def __init__(self, draws: Draws) -> None:
        self._draws = draws
        options = OffsetOptions(retention_ms=DurationMs(RETENTION_MS), metadata_size_bytes_max=SizeBytes(_LONGEST))
        self._offsets = CommittedOffsets(options)
        self._known: dict[OffsetKey, tuple[int, CommittedOffset]] = {}
        self._open: dict[int, dict[OffsetKey, tuple[int, CommittedOffset]]] = {}
        self._now_ms = 10_000

    def run(self) -> str:
        """Apply records until the steps are over or the two differ."""
        for at in range(STEP_COUNT):
            self._now_ms += self._draws.number(0, 300)
            told = self._step(at) or self._compared()
            if told:
                return told
        return ""

    def _step(self, at: int) -> str:
        draws = self._draws
        key = OffsetKey(draws.one(_GROUPS), draws.one(("t", "u")), PartitionId(draws.number(0, 1)))
        kind = draws.number(0, 7)
        if kind == 0:
            self._offsets.apply(key, None, Offset(at))
            self._known.pop(key, None)
            for offsets in self._open.values():
                offsets.pop(key, None)
            return ""
        if kind == 1:
            producer, is_committed = draws.number(1, 2), draws.is_one_in(2)
            self._offsets.end_transaction(ProducerId(producer), committed=is_committed)
            for each, (place, value) in self._open.pop(producer, {}).items():
                if is_committed and place > self._known.get(each, (-1, value))[0]:
                    self._known[each] = place, value
            return ""
        commit = Commit(
            TopicPartition(key.topic, key.partition),
            Offset(draws.number(0, 99)),
            draws.one((None, LeaderEpoch(draws.number(0, 3)))),
            draws.one(("", "abc", "abcd", "\U0001d11e", "\U0001d11ea", "\U0001d11eab")),
        )
        ((*stored,), (error,)) = self._offsets.records(key.group_id, [commit], TimeMs(self._now_ms))
        is_long = len(commit.metadata.encode("utf-16-le")) > 2 * _LONGEST
        value = CommittedOffset(
            offset=commit.offset,
            leader_epoch=commit.leader_epoch,
            metadata=commit.metadata,
            committed_ms=TimeMs(self._now_ms),
        )
        if stored != ([] if is_long else [(key, value)]) or error.name != (
            "OFFSET_METADATA_TOO_LARGE" if is_long else "NONE"
        ):
            return f"{commit} gives {stored} and {error}"
        if is_long:
            return ""
        if draws.is_one_in(5):
            expires_ms = TimeMs(self._now_ms + draws.number(0, 500))
            value = CommittedOffset(offset=commit.offset, committed_ms=TimeMs(self._now_ms), expires_ms=expires_ms)
        producer = draws.one((None, None, ProducerId(1), ProducerId(2)))
        self._offsets.apply(key, value, Offset(at), producer_id=producer)
        if producer is None:
            self._known[key] = at, value
        else:
            self._open.setdefault(producer, {})[key] = at, value
        return ""

    def _compared(self) -> str:
        for group in _GROUPS:
            known = {
                TopicPartition(key.topic, key.partition): value
                for key, (_, value) in self._known.items()
                if key.group_id == group
            }
            if self._offsets.of_group(group) != known:
                return f"{group} has {self._offsets.of_group(group)}, and {known} were committed"
            waiting = {
                TopicPartition(key.topic, key.partition)
                for offsets in self._open.values()
                for key in offsets
                if key.group_id == group
            }
            for partition in [TopicPartition(topic, PartitionId(each)) for topic in "tu" for each in range(2)]:
                if self._offsets.is_pending(group, partition) != (partition in waiting):
                    return f"{partition} of {group} is pending: {partition not in waiting}"
                if self._offsets.fetch(group, partition) != known.get(partition):
                    return f"{partition} of {group} is at {self._offsets.fetch(group, partition)}"
            told = self._expired(group, known, waiting)
            if told:
                return told
        return ""

    def _expired(self, group: str, known: dict[TopicPartition, CommittedOffset], waiting: set[TopicPartition]) -> str:
        draws = self._draws
        since = draws.one((None, TimeMs(self._now_ms - draws.number(RETENTION_MS - 1, RETENTION_MS + 1))))
        rule = draws.one((None, ExpiryRule(since_ms=since, kept_topics=frozenset(draws.some(("t", "u"))))))
        due = []
        for partition, value in sorted(known.items()):
            ends_ms = (value.committed_ms if since is None else since) + RETENTION_MS
            ends_ms = ends_ms if value.expires_ms is None else value.expires_ms
            if rule is not None and partition.topic not in rule.kept_topics and partition not in waiting:
                due += [partition] * (ends_ms <= self._now_ms)
        told = [
            TopicPartition(key.topic, key.partition) for key in self._offsets.expired(group, rule, TimeMs(self._now_ms))
        ]
        return "" if told == due else f"by {rule} at {self._now_ms} {told} expire, and {due} are due"


def _text(text: str | None, *, flexible: bool = False) -> bytes:
    return _sized(None if text is None else text.encode(), ">h", flexible=flexible)


def _binary(data: bytes, *, flexible: bool = False) -> bytes:
    return _sized(data, ">i", flexible=flexible)


def _sized(data: bytes | None, width: str, *, flexible: bool) -> bytes:
    if flexible:
        return _unsigned(0 if data is None else len(data) + 1) + (data or b"")
    return struct.pack(width, -1 if data is None else len(data)) + (data or b"")


def _unsigned(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number % 128 + 128]) + _unsigned(number // 128)


def _read(data: bytes, wanted: object, read: Callable[[bytes], object]) -> Iterator[str]:
    """Yield where a record is read as another one, or is read though it is not whole."""
    if read(data) != wanted:
        yield f"{data.hex()} is read as {read(data)}, and is {wanted}"
    for spoilt in (*(data[:end] for end in range(2, len(data))), data + b"\0"):
        try:
            yield f"{spoilt.hex()} is read as {read(spoilt)}, and is not whole"
        except CorruptDataError:
            continue


def _keys(draws: Draws) -> Iterator[str]:
    group, topic, partition = draws.one(_TEXTS), draws.one(_TEXTS), draws.number(0, 300)
    key = OffsetKey(group, topic, PartitionId(partition))
    data = struct.pack(">h", 1) + _text(group) + _text(topic) + struct.pack(">i", partition)
    group_data = struct.pack(">h", 2) + _text(group)
    if (key.to_bytes(), GroupKey(group).to_bytes()) != (data, group_data):
        yield f"{key} is written {key.to_bytes().hex()}"
    yield from _read(data, key, read_key)
    yield from _read(b"\0\0" + data[2:], key, read_key)
    yield from _read(group_data, GroupKey(group), read_key)
    if read_key(struct.pack(">h", 7)) != OtherKey(7):
        yield f"a key of version 7 is {read_key(struct.pack('>h', 7))}"


def _values(draws: Draws) -> Iterator[str]:
    version, text = draws.number(0, 4), draws.one(_TEXTS)
    offset, epoch, now_ms = draws.number(0, 2**30) << 9, draws.number(-1, 3), draws.number(0, 2**30) << 10
    expires_ms = draws.one((-1, now_ms + 5))
    data = struct.pack(">hq", version, offset) + (struct.pack(">i", epoch) if version >= 3 else b"")
    data += _text(text, flexible=version == 4) + struct.pack(">q", now_ms)
    data += struct.pack(">q", expires_ms) if version == 1 else b""
    value = CommittedOffset(
        offset=Offset(offset),
        leader_epoch=None if version < 3 or epoch < 0 else LeaderEpoch(epoch),
        metadata=text,
        committed_ms=TimeMs(now_ms),
        expires_ms=TimeMs(expires_ms) if version == 1 and expires_ms >= 0 else None,
    )
    yield from _read(data + (b"\0" if version == 4 else b""), value, read_committed_offset)
    if (version == 3 or value.expires_ms is not None) and value.to_bytes() != data:
        yield f"{value} is written {value.to_bytes().hex()}"
    if (told := _refused(struct.pack(">h", draws.one((-1, 5))) + data[2:], read_committed_offset)) is not None:
        yield told


def _refused(data: bytes, read: Callable[[bytes], object]) -> str | None:
    try:
        return f"{data.hex()} is read as {read(data)}"
    except CorruptDataError:
        return None


def _groups(draws: Draws) -> Iterator[str]:
    version = draws.number(0, 4)
    flexible = version == 4
    name, leader = draws.one((None, "range")), draws.one((None, "m"))
    generation, since_ms = draws.number(0, 9), draws.number(0, 2**30) << 10
    data = struct.pack(">h", version) + _text("consumer", flexible=flexible) + struct.pack(">i", generation)
    data += _text(name, flexible=flexible) + _text(leader, flexible=flexible)
    data += struct.pack(">q", since_ms) if version >= 2 else b""
    count = draws.number(0, 2)
    data += _unsigned(count + 1) if flexible else struct.pack(">i", count)
    members = []
    for number in range(count):
        instance, client = draws.one((None, "i")), draws.one(_TEXTS)
        session_ms, rebalance_ms = draws.number(1, 99), draws.number(1, 99)
        data += _text(f"m{number}", flexible=flexible) + (_text(instance, flexible=flexible) if version >= 3 else b"")
        data += _text(client, flexible=flexible) + _text("/h", flexible=flexible)
        data += struct.pack(">i", rebalance_ms) if version >= 1 else b""
        data += struct.pack(">i", session_ms) + _binary(b"s", flexible=flexible)
        data += _binary(b"a" * number, flexible=flexible) + (b"\0" if flexible else b"")
        members.append(
            StoredMember(
                member_id=MemberId(f"m{number}"),
                instance_id=InstanceId(instance) if instance and version >= 3 else None,
                client_id=client,
                client_host="/h",
                rebalance_timeout_ms=DurationMs(rebalance_ms if version >= 1 else session_ms),
                session_timeout_ms=DurationMs(session_ms),
                subscription=b"s",
                assignment=b"a" * number,
            )
        )
    record = GroupRecord(
        group_id="g",
        protocol_type="consumer",
        generation=generation,
        protocol_name=name,
        leader_id=None if leader is None else MemberId(leader),
        state_time_ms=since_ms if version >= 2 else -1,
        members=tuple(members),
    )
    yield from _read(data + (b"\0" if flexible else b""), record, lambda each: read_group("g", each))
    if version == 3 and write_group(record) != data:
        yield f"{record} is written {write_group(record).hex()}"


def _shares(partitions: tuple[TopicPartition, ...]) -> bytes:
    topics = sorted({each.topic for each in partitions})
    data = struct.pack(">i", len(topics))
    for topic in topics:
        ids = sorted(each.partition for each in partitions if each.topic == topic)
        data += _text(topic) + struct.pack(f">i{len(ids)}i", len(ids), *ids)
    return data


def _consumers(draws: Draws) -> Iterator[str]:
    """Yield where a subscription, an assignment or an assignor's memory is not by its field list."""
    every = [TopicPartition(topic, PartitionId(each)) for topic in "tu" for each in range(3)]
    owned = tuple(sorted(draws.some(every)))
    topics, rack = tuple(sorted(draws.some(("t", "u", "v")))), draws.one((None, "r"))
    version, generation, note = draws.number(0, 3), draws.number(-1, 5), draws.one((b"", b"note"))
    data = struct.pack(">hi", version, len(topics)) + b"".join(map(_text, topics))
    data += _binary(note) if note else struct.pack(">i", -1)
    data += _shares(owned) if version >= 1 else b""
    data += struct.pack(">i", generation) if version >= 2 else b""
    data += _text(rack) if version >= 3 else b""
    said: dict[str, Any] = {"topics": topics, "user_data": note}
    if version >= 1:
        said["owned"] = owned
    if version >= 2:
        said["generation"] = generation
    if version >= 3:
        said["rack"] = rack
    if read_subscription(data) != Subscription(**said):
        yield f"{data.hex()} is read as {read_subscription(data)}"
    if version == 3 and Subscription(**said).to_bytes() != data:
        yield f"{Subscription(**said)} is written {Subscription(**said).to_bytes().hex()}"
    assigned = struct.pack(">h", 3) + _shares(owned) + struct.pack(">i", -1)
    if write_assignment(owned) != assigned or read_assignment(assigned) != frozenset(owned):
        yield f"{owned} are written {write_assignment(owned).hex()}, read {read_assignment(assigned)}"
    memory = _shares(owned) + struct.pack(">i", generation)
    if sticky_memory(owned, generation) != memory or read_sticky_memory(memory) != (owned, generation):
        yield f"{owned} in {generation} are remembered {sticky_memory(owned, generation).hex()}"
    if read_sticky_memory(memory[:-4]) != (owned, -1) or read_sticky_memory(b"") != ((), -1):
        yield f"a memory without generation is {read_sticky_memory(memory[:-4])}"


def _routes(draws: Draws) -> Iterator[str]:
    name, count = f"group-{draws.number(0, 10**6)}", draws.one((1, 3, 50))
    code = 0
    for unit in name:
        code = (31 * code + ord(unit)) % 2**32
    signed = code - 2**32 if code >= 2**31 else code
    if offsets_partition(name, count) != abs(signed) % count:
        yield f"{name} is in partition {offsets_partition(name, count)} of {count}"
    if offsets_partition("polygenelubricants", count) != 0:
        yield "the hash without a positive one is not partition 0"
