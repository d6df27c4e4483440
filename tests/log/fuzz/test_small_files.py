"""Fuzzing of what reads indexes, producer snapshots, checkpoints, metadata files and file names.

Sound inputs are written back and have to come out equal, or, where more than one text says the same, be read alike.
"""

from __future__ import annotations

from typing import Final

import pytest

from broker.clock import ManualClock
from broker.ids import Offset, PartitionId, ProducerEpoch, ProducerId, TopicPartition
from broker.units import TimeMs
from log.codecs.crc import crc32c
from log.errors import (
    CheckpointError,
    CorruptIndexError,
    CorruptSnapshotError,
    CorruptTransactionIndexError,
)
from log.partition.producer_entry import BatchMetadata, ProducerEntry
from log.partition.producer_snapshot import encode_snapshot, parse_snapshot
from log.segments.file_names import base_offset_of, file_name, kind_of
from log.segments.offset_index import OffsetIndex, check_offset_index, offset_index_entries
from log.segments.time_index import TimeIndex, check_time_index, time_index_entries
from log.segments.txn_index import AbortedTransaction, aborted_transactions, encode_aborted
from log.storage import MemoryStorage
from log.storage.checkpoints import (
    encode_epoch_checkpoint,
    encode_offset_checkpoint,
    parse_epoch_checkpoint,
    parse_offset_checkpoint,
)
from log.storage.metadata_files import (
    encode_meta_properties,
    encode_partition_metadata,
    parse_clean_shutdown,
    parse_meta_properties,
    parse_partition_metadata,
)
from tests.log.fuzz.target import Outcome, Target, fuzz

pytestmark = pytest.mark.usefixtures("input_count")

BASE: Final = 1000
PATH: Final = "00000000000000001000.index"


def numbers(*values: int, sizes: tuple[int, ...]) -> bytes:
    return b"".join(value.to_bytes(sizes[place % len(sizes)], "big", signed=True) for place, value in enumerate(values))


def is_compared(data: bytes) -> bool:
    """One input in eight: comparing all that was read both ways costs more than all the rest of a run."""
    return crc32c(data) % 8 == 0


def holding(storage: MemoryStorage, data: bytes) -> MemoryStorage:
    """The storage with `data` as its only file."""
    storage.replace(PATH, data)
    return storage


def both_happened(outcome: Outcome) -> None:
    assert min(outcome.accepted_count, outcome.refused_count) > 0


def test_a_damaged_offset_index_is_searched_alike_one_by_one_and_at_once() -> None:
    seeds = (
        numbers(*(number for place in range(20) for number in (place * 7, place * 100)), sizes=(4,)),
        numbers(1, 0, 5, 40, 0, 0, 0, 0, sizes=(4,)),
        b"",
    )
    targets = [990, 1001, 1050, BASE + 2**31]
    storage = MemoryStorage(ManualClock())

    def run(data: bytes) -> None:
        index = OffsetIndex.open(holding(storage, data), PATH, BASE, size_bytes_max=800)
        index.lookup(targets[len(data) % len(targets)])
        if is_compared(data):
            single = [index.lookup(target) for target in targets]
            many = index.lookup_many(targets)
            assert many.offsets.tolist() == [found.offset for found in single]
            assert many.positions.tolist() == [found.position for found in single]
            index.truncate_to(targets[len(data) % len(targets)])
        assert index.entry_count <= len(data) // 8
        check_offset_index(offset_index_entries(data, BASE), BASE, len(data))

    both_happened(fuzz(Target("offset index", seeds, run, allowed=(CorruptIndexError,))))


def test_a_damaged_time_index_is_searched_alike_one_by_one_and_at_once() -> None:
    seeds = (
        numbers(*(number for place in range(20) for number in (10**12 + place * 7, place)), sizes=(8, 4)),
        numbers(5, 1, 9, 4, 0, 0, 0, 0, sizes=(8, 4)),
        b"",
    )
    targets = [-1, 9, 10**12 + 70, 2**63 - 1]
    storage = MemoryStorage(ManualClock())

    def run(data: bytes) -> None:
        index = TimeIndex.open(holding(storage, data), PATH, BASE, size_bytes_max=1200)
        index.lookup(targets[len(data) % len(targets)])
        if is_compared(data):
            single = [index.lookup(target) for target in targets]
            many = index.lookup_many(targets)
            assert many.timestamps.tolist() == [found.timestamp for found in single]
            assert many.offsets.tolist() == [found.offset for found in single]
            index.truncate_to(BASE + len(data) % 25)
        check_time_index(time_index_entries(data, BASE), BASE, len(data))

    both_happened(fuzz(Target("time index", seeds, run, allowed=(CorruptIndexError,))))


def test_a_damaged_transaction_index_is_read_to_the_damage() -> None:
    entries = [
        encode_aborted(AbortedTransaction(ProducerId(7), Offset(at), Offset(at + 9), Offset(at + 10)))
        for at in range(0, 50, 10)
    ]

    def run(data: bytes) -> None:
        found = tuple(aborted_transactions(data))
        assert len(found) == len(data) // 34
        for place, aborted in enumerate(found):
            assert encode_aborted(aborted)[2:] == data[34 * place + 2 : 34 * place + 34]

    both_happened(
        fuzz(Target("transaction index", (b"".join(entries), entries[0]), run, allowed=(CorruptTransactionIndexError,)))
    )


def producer(number: int) -> ProducerEntry:
    entry = ProducerEntry(
        ProducerId(number),
        producer_epoch=ProducerEpoch(number % 7),
        last_timestamp=TimeMs(10**12),
        current_txn_first_offset=Offset(number) if number % 2 else None,
    )
    if number % 3:
        entry.batches.append(BatchMetadata(number, Offset(5 * number), 4, TimeMs(10**12)))
    return entry


def test_a_damaged_snapshot_is_refused_or_says_the_same_when_written_again() -> None:
    seeds = [encode_snapshot([producer(number) for number in range(count)]) for count in (0, 1, 5)]

    def with_checksum(data: bytearray) -> bytes:
        if len(data) >= 6:
            data[0:2] = b"\0\1"
            data[2:6] = crc32c(data[6:]).to_bytes(4, "big")
        return bytes(data)

    def run(data: bytes) -> None:
        entries = parse_snapshot(data)
        again = encode_snapshot(entries)
        assert len(again) <= len(data)
        assert encode_snapshot(parse_snapshot(again)) == again

    both_happened(fuzz(Target("snapshot", seeds, run, repair=with_checksum, allowed=(CorruptSnapshotError,))))


def test_a_damaged_offset_checkpoint_is_refused_or_read_alike_when_written_again() -> None:
    offsets = {TopicPartition(f"t-{number}", PartitionId(number)): Offset(number * 10**9) for number in range(4)}

    def run(data: bytes) -> None:
        found = parse_offset_checkpoint(data)
        if all(which.topic.split() == [which.topic] for which in found):
            assert parse_offset_checkpoint(encode_offset_checkpoint(found)) == found

    seeds = (encode_offset_checkpoint(offsets), b"0\r\n1\ra\t0 5", b"0\n0\n")
    both_happened(fuzz(Target("offset checkpoint", seeds, run, allowed=(CheckpointError,))))


def test_a_damaged_epoch_checkpoint_is_refused_or_read_alike_when_written_again() -> None:
    def run(data: bytes) -> None:
        found = parse_epoch_checkpoint(data)
        assert parse_epoch_checkpoint(encode_epoch_checkpoint(found)) == found

    seeds = (b"0\n3\n0 0\n3 17\n9 4000000001\n", b"0\n0\n", b"0\n1\n-1 +5")
    both_happened(fuzz(Target("epoch checkpoint", seeds, run, allowed=(CheckpointError,))))


def test_damaged_partition_metadata_is_refused_or_read_alike_when_written_again() -> None:
    def run(data: bytes) -> None:
        found = parse_partition_metadata(data)
        assert parse_partition_metadata(encode_partition_metadata(found)) == found

    seeds = (b"version: 0\ntopic_id: Pza2aPRTs8lDJ5IF8BRtFg", b"version: 3\r\ntopic_id: Pza2aPRTs8lDJ5IF8BRtFg==\n")
    both_happened(fuzz(Target("partition.metadata", seeds, run, allowed=(CheckpointError,))))


def test_damaged_meta_properties_are_refused_or_read_alike_when_written_again() -> None:
    def run(data: bytes) -> None:
        found = parse_meta_properties(data)
        # Written as UTF-8 and read as Latin-1, by Kafka too: only ASCII comes back.
        if is_compared(data) and (found.cluster_id is None or found.cluster_id.isascii()):
            assert parse_meta_properties(encode_meta_properties(found)) == found

    seeds = (
        b"#\n#Sat\nnode.id=2\ndirectory.id=AAAAAAAAA-kAAAAAAAAAAw\nversion=1\ncluster.id=cluster-1\n",
        b"broker.id : 3\nversion=0\ncluster.id a\\u0041\\\n  b\n",
    )
    both_happened(fuzz(Target("meta.properties", seeds, run, allowed=(CheckpointError,))))


def test_no_clean_shutdown_marker_is_refused() -> None:
    seeds = (b'{"version":0,"brokerEpoch":42}', b'{"brokerEpoch":[[[{"a":1e9}]]]}')
    outcome = fuzz(Target("clean shutdown", seeds, parse_clean_shutdown, allowed=()))
    assert outcome.refused_count == 0


def test_a_damaged_file_name_has_no_offset_or_begins_with_it() -> None:
    def run(data: bytes) -> None:
        name = data.decode("latin-1")
        offset = base_offset_of(name)
        assert kind_of(name) in name
        if offset is not None:
            assert int(name.partition(".")[0]) == offset
            assert base_offset_of(file_name(offset, kind_of(name))) == offset

    seeds = (
        b"00000000000000000042.log",
        b"09223372036854775807.timeindex.deleted",
        b"0.snapshot",
        b"partition.metadata",
    )
    outcome = fuzz(Target("file names", seeds, run, allowed=()))
    assert outcome.refused_count == 0
