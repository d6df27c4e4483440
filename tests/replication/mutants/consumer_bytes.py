"""Write the records of a consumer group byte by byte, apart from the code that writes them, and have them read.

What it decides: a group, and one record of each kind that Kafka writes about it: with racks, deleted topics and tagged
fields where it may have them, or cut short, or of another version.

Source: ConsumerGroup*Key and ConsumerGroup*Value (JSON definitions of group-coordinator), 4.0.1 and 4.3.1, as field
lists; KIP-482 for the encoding of flexible versions.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from broker.errors import CorruptDataError
from broker.group.consumer import ConsumerGroup, ConsumerMember, MemberState
from broker.group.consumer.records import (
    ConsumerGroupKey,
    ConsumerGroupRecord,
    TopicIds,
    applied,
    changes,
    read_consumer_key,
)
from broker.group.members import InstanceId, MemberId
from broker.ids import PartitionId, TopicPartition
from broker.units import DurationMs, TimeMs
from tests.replication.mutants.drawing import Draws

_IDS: Final = {"t": b"t" * 16, "u": b"u" * 16}
_GONE: Final = b"x" * 16
"""The id of a topic that was deleted."""
_KNOWN: Final = TopicIds(_IDS)
_TEXTS: Final = ("", "a", "é", "b" * 126, "c" * 127, "d" * 128, "e" * 16_383)
_STATES: Final = (MemberState.STABLE, MemberState.UNREVOKED_PARTITIONS, MemberState.UNRELEASED_PARTITIONS)
_NAME: Final = MemberId("m")
_EPOCH, _TOPICS, _MEMBER, _TARGET_EPOCH, _TARGET, _CURRENT = range(3, 9)


@attrs.frozen
class _Case:
    """Hold the group before a record; `is_ours` says that this coordinator writes the record itself."""

    draws: Draws
    before: ConsumerGroup
    is_ours: bool

    def is_odd(self, one_in: int) -> bool:
        """Return whether the record has something that only another coordinator writes."""
        return not self.is_ours and self.draws.is_one_in(one_in)

    def end(self) -> bytes:
        """Return the tagged fields at the end of a record, now and then those of a later release."""
        return b"\x01\x05\x02hi" if self.is_odd(3) else b"\0"


def consumer_records(draws: Draws) -> Iterator[str]:
    """Yield where a record of a consumer group is not read or written by its field list."""
    member = ConsumerMember(member_id=_NAME, client_id="former", assigned=frozenset({_partition("t", 9)}))
    before = ConsumerGroup(group_id="g", members={_NAME: member} if draws.is_one_in(2) else {})
    for write in (_epoch, _topics, _member, _target_epoch, _target, _current):
        case = _Case(draws, before, is_ours=draws.is_one_in(2))
        yield from _of_kind(case, *write(case))
    yield from _tombstones(before)
    yield from _keys(draws)


def _of_kind(case: _Case, version: int, data: bytes, after: ConsumerGroup) -> Iterator[str]:
    """Yield where the group is another after a record, or a record is read that is not whole."""
    draws, before = case.draws, case.before
    name = _NAME if version in (_MEMBER, _TARGET, _CURRENT) else None
    key = ConsumerGroupKey(version, "g", name)
    found = applied(before, ConsumerGroupRecord(key, data), _KNOWN)
    if attrs.evolve(found, topics=dict(found.topics)) != after:
        yield f"{key} {data.hex()} makes {found} of {before}, and {after} is right"
    ends = {1, len(data) - 1, *(draws.number(0, len(data) - 1) for _ in range(6))}
    spoilt = [data[:end] for end in sorted(ends)] + [struct.pack(">h", draws.one((-1, 1))) + data[2:]]
    if version == _CURRENT:
        spoilt.append(data[:10] + bytes([draws.one((3, 4, 255))]) + data[11:])
    for each in spoilt:
        try:
            yield f"{key} {each.hex()} is read as {applied(before, ConsumerGroupRecord(key, each), _KNOWN)}"
        except CorruptDataError:
            continue
    wrote = {record.key: record.value for record in changes(before, after, _KNOWN)}
    if case.is_ours and after != before and wrote.get(key) != data:
        yield f"{key} of {after} is written {wrote.get(key)!r}, and {data!r} is right"


# Values, each with the version of its key and the group after it.


def _epoch(case: _Case) -> tuple[int, bytes, ConsumerGroup]:
    epoch = case.draws.number(0, 2**31 - 2)
    return _EPOCH, struct.pack(">hi", 0, epoch) + case.end(), attrs.evolve(case.before, epoch=epoch)


def _topics(case: _Case) -> tuple[int, bytes, ConsumerGroup]:
    draws = case.draws
    counts = {topic: draws.number(1, 300) for topic in sorted(draws.some(("t", "u")))}
    data = struct.pack(">h", 0) + _size(len(counts))
    for topic, count in counts.items():
        racks = draws.number(0, 2) if case.is_odd(2) else 0
        data += _IDS[topic] + _text(topic) + struct.pack(">i", count) + _size(racks)
        for number in range(racks):
            names = [draws.one(("rack", "")) for _ in range(number * draws.number(0, 6))]
            data += struct.pack(">i", number) + _size(len(names)) + b"".join(map(_text, names)) + b"\0"
        data += b"\0"
    return _TOPICS, data + case.end(), attrs.evolve(case.before, topics=counts)


def _member(case: _Case) -> tuple[int, bytes, ConsumerGroup]:
    draws, known = case.draws, case.before.members.get(_NAME, ConsumerMember(member_id=_NAME))
    instance, rack, assignor = (draws.one((None, *_TEXTS)) for _ in range(3))
    client, topics = draws.one(_TEXTS), sorted(draws.some(("t", "u", "v")))
    wait_ms = draws.number(0, 2**31 - 2)
    host = "/host" if case.is_odd(2) else "/127.0.0.1"
    expression = draws.one(("regex", None)) if case.is_odd(2) else ""
    data = struct.pack(">h", 0) + b"".join(map(_text, (instance, rack, client, host)))
    if case.is_odd(4):
        topics = [""] * draws.number(1, 20)
    data += _size(len(topics)) + b"".join(map(_text, topics)) + _text(expression)
    data += struct.pack(">i", wait_ms) + _text(assignor)
    member = attrs.evolve(
        known,
        instance_id=None if instance is None else InstanceId(instance),
        rack=rack,
        client_id=client,
        subscribed_topics=frozenset(topics),
        rebalance_timeout_ms=DurationMs(wait_ms),
        assignor=assignor,
    )
    return _MEMBER, data + case.end(), case.before.with_member(member)


def _target_epoch(case: _Case) -> tuple[int, bytes, ConsumerGroup]:
    epoch, at_ms = case.draws.number(0, 2**31 - 2), case.draws.one((None, case.draws.number(1, 2**31 - 2) << 20))
    data = struct.pack(">hi", 0, epoch) + (b"\0" if at_ms is None else b"\x01\0\x08" + struct.pack(">q", at_ms))
    target_ms = None if at_ms is None else TimeMs(at_ms)
    if case.is_odd(3):
        # 0 is the field's default: it stands for a time that is not known.
        data, target_ms = struct.pack(">hi", 0, epoch) + b"\x01\0\x08" + bytes(8), None
    return _TARGET_EPOCH, data, attrs.evolve(case.before, target_epoch=epoch, target_ms=target_ms)


def _target(case: _Case) -> tuple[int, bytes, ConsumerGroup]:
    data, share = _shares(case)
    after = attrs.evolve(case.before, target={_NAME: frozenset(share)})
    return _TARGET, struct.pack(">h", 0) + data + case.end(), after


def _current(case: _Case) -> tuple[int, bytes, ConsumerGroup]:
    draws, known = case.draws, case.before.members.get(_NAME, ConsumerMember(member_id=_NAME))
    epoch, former, place = draws.number(-2, 300), draws.number(-1, 300), draws.number(0, 2)
    (first, assigned), (second, revoking) = (_shares(case, topic, has_epochs=True) for topic in "tu")
    member = attrs.evolve(
        known,
        epoch=epoch,
        previous_epoch=former,
        state=_STATES[place],
        assigned=frozenset(assigned),
        revoking=frozenset(revoking),
        assignment_epochs={each: at for each, at in {**assigned, **revoking}.items() if at is not None},
    )
    data = struct.pack(">hiib", 0, epoch, former, place) + first + second + case.end()
    return _CURRENT, data, case.before.with_member(member)


def _shares(
    case: _Case, topics: str = "tu", *, has_epochs: bool = False
) -> tuple[bytes, Mapping[TopicPartition, int | None]]:
    """Return partitions by topic, now and then of a deleted one, and those of known topics, each with its epoch."""
    draws = case.draws
    some = sorted(draws.some([*topics]))
    is_gone = case.is_odd(3)
    data, found = _size(len(some) + is_gone), dict[TopicPartition, int | None]()
    for topic in some:
        numbers = sorted(draws.some((0, 1, 2, 300), 1))
        epochs = [draws.number(0, 300) for _ in numbers] if has_epochs and draws.is_one_in(2) else None
        data += _IDS[topic] + _numbers(numbers) + _tag(b"" if epochs is None else _numbers(epochs))
        found |= {_partition(topic, each): epochs[at] if epochs else None for at, each in enumerate(numbers)}
    return data + (_GONE + _numbers([7]) + b"\0") * is_gone, found


def _tombstones(before: ConsumerGroup) -> Iterator[str]:
    """Yield where a tombstone does not take what its key names, or takes more, known or not."""
    share = frozenset({_partition("t", 1)})
    before = attrs.evolve(before, target={_NAME: share, MemberId("n"): share})
    held = {name: attrs.evolve(one, assigned=frozenset(), revoking=frozenset()) for name, one in before.members.items()}
    after = {
        _MEMBER: attrs.evolve(before, members={}),
        _TARGET: attrs.evolve(before, target={MemberId("n"): share}),
        _CURRENT: attrs.evolve(before, members=held),
    }
    for version, wanted in after.items():
        found = applied(before, ConsumerGroupRecord(ConsumerGroupKey(version, "g", _NAME), None), _KNOWN)
        if found != wanted:
            yield f"a tombstone of version {version} makes {found} of {before}"


def _keys(draws: Draws) -> Iterator[str]:
    group, name = draws.one(_TEXTS), draws.one(_TEXTS)
    for version in range(12):
        of_member = version in (_MEMBER, _TARGET, _CURRENT)
        key = ConsumerGroupKey(version, group, MemberId(name) if of_member else None)
        texts = (group, name) if of_member else (group,)
        data = struct.pack(">h", version) + b"".join(
            struct.pack(">h", len(each.encode())) + each.encode() for each in texts
        )
        found = read_consumer_key(data)
        if found != (key if 3 <= version <= 8 else None) or key.to_bytes() != data:
            yield f"{data!r} is read as {found}, and {key} is written {key.to_bytes()!r}"


# The encoding of flexible versions.


def _partition(topic: str, number: int) -> TopicPartition:
    return TopicPartition(topic, PartitionId(number))


def _unsigned(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number % 128 + 128]) + _unsigned(number // 128)


def _size(count: int) -> bytes:
    return _unsigned(count + 1)


def _text(text: str | None) -> bytes:
    return b"\0" if text is None else _size(len(text.encode())) + text.encode()


def _numbers(numbers: list[int]) -> bytes:
    return _size(len(numbers)) + struct.pack(f">{len(numbers)}i", *numbers)


def _tag(data: bytes) -> bytes:
    """Return tagged fields: tag 0 with the data, or none."""
    return b"\x01\0" + _unsigned(len(data)) + data if data else b"\0"
