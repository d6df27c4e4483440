"""What coordinators write to `__consumer_offsets` another one reads, whether the partition was compacted or not."""

from __future__ import annotations

import attrs
import pytest

from broker.clock import ManualClock
from broker.group.classic import GroupRecord
from broker.group.consumer import ConsumerGroup
from broker.group.records import CommittedOffset, OffsetKey
from broker.group.service import GroupRemoval, OffsetRecord
from broker.ids import Offset, PartitionId
from broker.units import TimeMs
from log.compaction import CleanerOptions, clean, log_to_clean
from log.log_config import LogConfig
from log.partition.partition_log import PartitionLog
from log.partition.recovery import LastShutdown
from log.storage import MemoryStorage
from replication.groups import GroupsExtension
from replication.groups.client.assigning import GroupProtocol
from replication.groups.offsets_log import Journal, OffsetsRecord, StoredGroup, read_groups, records_of
from replication.groups.plan import EventKind
from replication.simulation import Simulation
from tests.replication.groups.builders import LAYOUT, OPTIONS, act, groups_of, member

NOW_MS = TimeMs(0)
MEMBERS = {
    protocol: groups_of(
        member("a", protocol),
        member("b", protocol, act(20_000, EventKind.CLOSE), act(30_000, EventKind.START), start_ms=3_100),
        member("c", protocol, act(25_000, EventKind.CRASH), act(35_000, EventKind.START), start_ms=9_000),
    )
    for protocol in GroupProtocol
}


def written_by(groups: GroupsExtension) -> PartitionLog:
    """Return the log that the coordinator has written after a minute."""
    simulation = Simulation(OPTIONS, (), extension=groups)
    simulation.run_until(60_000)
    leader = simulation.cluster.controller.image.partitions[LAYOUT.first_internal].leader
    return simulation.cluster.nodes[leader].logs[LAYOUT.first_internal].log


def compacted(log: PartitionLog) -> PartitionLog:
    """Return a copy of a log, all of it compacted but the last record's segment."""
    copy = PartitionLog.open(
        MemoryStorage(ManualClock()), "copy", LogConfig(compacts=True), LastShutdown(clean=True), now_ms=NOW_MS
    )
    while copy.log_end_offset < log.log_end_offset:
        copy.append_as_follower(bytes(log.read(copy.log_end_offset, 10_000).records), now_ms=NOW_MS)
    copy.update_high_watermark(copy.log_end_offset)
    copy.roll(now_ms=NOW_MS)
    clean(log_to_clean(copy, None, now_ms=NOW_MS), now_ms=NOW_MS, options=CleanerOptions(map_slot_count=10_000))
    return copy


def read(log: PartitionLog) -> dict[str, StoredGroup]:
    return read_groups(Journal(LAYOUT.counts), log)


def comparable(groups: dict[str, StoredGroup]) -> dict[str, object]:
    """Return what was read, in no order."""
    return {
        name: (
            read.classic,
            None if read.consumer is None else attrs.evolve(read.consumer, topics=dict(read.consumer.topics)),
            {key: entry.value for key, entry in read.offsets.items()},
        )
        for name, read in groups.items()
    }


@pytest.mark.parametrize("protocol", GroupProtocol)
def test_a_compacted_partition_reads_as_the_whole_one(protocol: GroupProtocol) -> None:
    log = written_by(MEMBERS[protocol])
    short = compacted(log)
    assert len(list(records_of(short))) < len(list(records_of(log))) // 2
    groups = read(log)
    assert comparable(read(short)) == comparable(groups)
    assert len(groups["group"].offsets) == 3
    assert (groups["group"].consumer is not None) == (protocol is GroupProtocol.CONSUMER)


def test_what_is_not_committed_is_kept_apart() -> None:
    log = written_by(groups_of(member("a", GroupProtocol.EAGER)))
    high = log.high_watermark
    assert not read(log)["group"].uncommitted
    low = compacted(log)
    offsets = [offset for offset, record in records_of(low) if record.key[:2] == b"\0\1"]
    low.update_high_watermark(offsets[-1])
    group = read(low)["group"]
    assert [each.offset for each in group.uncommitted] == [offsets[-1]]
    assert len(group.offsets) == 2
    assert offsets[-1] < high


def test_a_journal_that_has_read_a_group_writes_only_what_changes_after_that() -> None:
    group = ConsumerGroup(group_id="g", epoch=1, topics={"t": 3})
    first = Journal(["t"])
    stored = [(Offset(number), record) for number, record in enumerate(first.records((group,)))]
    second = Journal(["t"])
    assert stored != []
    known = second.read(stored, Offset(len(stored)))["g"].consumer
    assert known is not None
    assert second.records((known,)) == ()


def test_a_group_follows_the_tombstones_of_one_of_the_other_protocol() -> None:
    """An empty group of either protocol gives way; a coordinator that reads the partition knows the last one alone."""
    consumer = ConsumerGroup(group_id="g", epoch=3, target_epoch=2)
    classic = GroupRecord(
        group_id="g",
        protocol_type="consumer",
        generation=1,
        protocol_name=None,
        leader_id=None,
        state_time_ms=0,
        members=(),
    )
    journal = Journal()
    written: list[tuple[Offset, OffsetsRecord]] = []
    for entry in (classic, consumer, classic, consumer, classic):
        written += [(Offset(0), record) for record in journal.records((entry,))]
        journal.written((entry,))
        found = Journal().read(written, Offset(1))["g"]
        is_classic = isinstance(entry, GroupRecord)
        assert ((found.classic is not None), (found.consumer is not None)) == (is_classic, not is_classic)
    journal.written((GroupRemoval("g"),))
    assert [record.value is None for record in journal.records((consumer,))] == [False, False]


def test_an_offset_that_has_expired_is_written_without_a_value_and_read_as_deleted() -> None:
    """OffsetMetadataManager.replay, 4.3.1: an offset's key without a value deletes what was committed before."""
    key = OffsetKey("g", "t", PartitionId(0))
    value = CommittedOffset(offset=Offset(7), leader_epoch=None, metadata="", committed_ms=NOW_MS)
    entries = (OffsetRecord(key, value), OffsetRecord(key, None))
    records = Journal().records(entries)
    assert [each.value is None for each in records] == [False, True]
    numbered = [(Offset(number), record) for number, record in enumerate(records)]
    assert [Journal().read(numbered[:count], Offset(2))["g"].offsets for count in (1, 2)] == [
        {key: each} for each in entries
    ]
