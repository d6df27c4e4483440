"""Fuzzing of what reads small files and records: each takes a damaged input as declared, or refuses it.

What was taken is written again, and has to come out equal, or, where more than one text says the same, be read alike.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import pytest

from broker.clock import ManualClock
from broker.entropy import SplitMix64
from broker.errors import BrokersideError, CorruptDataError, UsageError
from broker.group.members import GroupRecord, InstanceId, MemberId, StoredMember
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
from broker.ids import LeaderEpoch, Offset, PartitionId, ProducerEpoch, ProducerId, TopicPartition
from broker.units import DurationMs, TimeMs
from log import batches_in
from log.batches.batch_v2 import CHECKED_POSITION, CRC_POSITION
from log.batches.build import BatchSpec, build_batch
from log.codecs.crc import crc32c
from log.errors import CheckpointError, CorruptIndexError, CorruptSnapshotError, CorruptTransactionIndexError
from log.log_dir import LogDir, LogDirOptions
from log.metadata import (
    MetadataFile,
    RejectedRecords,
    Replay,
    arrange,
    decode_record,
    looks_like_metadata,
    record_json,
    view_of,
)
from log.metadata.state import MetadataState
from log.partition.producer_entry import BatchMetadata, ProducerEntry, encode_snapshot, parse_snapshot
from log.record import Record
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
from log.storage.directory_names import UnexpectedDirectoryError, parse_directory_name
from log.storage.metadata_files import (
    encode_meta_properties,
    encode_partition_metadata,
    parse_clean_shutdown,
    parse_meta_properties,
    parse_partition_metadata,
)
from tests.log import made
from tests.log.fuzz.target import Target, fuzz, mutated
from tests.log.made import NOW
from tests.log.metadata.drawn import image_of
from tests.log.metadata.made import START_MS, broker, change, config, fenced, log_file, partition, snapshot_file, topic
from tests.support.disk_image import DiskImage, storage_of

pytestmark = pytest.mark.usefixtures("input_count")

BASE: Final = 1000
PATH: Final = "00000000000000001000.index"
STORAGE: Final = MemoryStorage(ManualClock())
OFFSETS: Final = [990, 1001, 1050, BASE + 2**31]
TIMES: Final = [-1, 9, 10**12 + 70, 2**63 - 1]
CHECKPOINTS: Final = (CheckpointError,)
REAL: Final = Path(__file__).parents[2] / "real_data" / "kraft" / "__cluster_metadata-0"
VALUES: Final = tuple(
    sorted(
        {
            record.value
            for path in sorted(REAL.iterdir())
            for batch in batches_in(path.read_bytes())
            if not batch.is_control
            for record in batch.records()
            if record.value is not None
        }
    )
)
MEMBER: Final = StoredMember(
    member_id=MemberId("consumer-1"),
    instance_id=InstanceId("one"),
    client_id="consumer",
    client_host="/10.0.0.1",
    rebalance_timeout_ms=DurationMs(300_000),
    session_timeout_ms=DurationMs(45_000),
    subscription=b"\0\3\0\0",
    assignment=b"",
)
EMPTY_GROUP: Final = GroupRecord(
    group_id="g",
    protocol_type="",
    generation=0,
    protocol_name=None,
    leader_id=None,
    state_time_ms=TimeMs(1),
    members=(),
)
GROUP: Final = attrs.evolve(EMPTY_GROUP, protocol_type="consumer", generation=7, members=(MEMBER, MEMBER))
COMMITTED: Final = CommittedOffset(offset=Offset(42), leader_epoch=LeaderEpoch(3), metadata="é", committed_ms=TimeMs(9))
FLEXIBLE: Final = b"\0\4" + COMMITTED.to_bytes()[2:14] + b"\3\xc3\xa9" + bytes(7) + b"\x09\0"
EXPIRING: Final = CommittedOffset(offset=Offset(1), committed_ms=TimeMs(2), expires_ms=TimeMs(3)).to_bytes()


def numbers(*values: int, sizes: tuple[int, ...]) -> bytes:
    return b"".join(value.to_bytes(sizes[place % len(sizes)], "big", signed=True) for place, value in enumerate(values))


def is_compared(data: bytes) -> bool:
    """One input in eight: comparing all that was read both ways costs more than all the rest of a run."""
    return crc32c(data) % 8 == 0


def both_ways(parse: Callable[[bytes], Any], encode: Callable[[Any], bytes]) -> Callable[[bytes], None]:
    """Return a run that reads, writes and reads again."""

    def run(data: bytes) -> None:
        found = parse(data)
        assert parse(encode(found)) == found

    return run


def offset_index(data: bytes) -> None:
    STORAGE.replace(PATH, data)
    index = OffsetIndex.open(STORAGE, PATH, BASE, size_bytes_max=800)
    index.lookup(OFFSETS[len(data) % len(OFFSETS)])
    if is_compared(data):
        index.truncate_to(OFFSETS[len(data) % len(OFFSETS)])
    assert index.entry_count <= len(data) // 8
    check_offset_index(offset_index_entries(data, BASE), BASE, len(data))


def time_index(data: bytes) -> None:
    STORAGE.replace(PATH, data)
    index = TimeIndex.open(STORAGE, PATH, BASE, size_bytes_max=1200)
    index.lookup(TIMES[len(data) % len(TIMES)])
    if is_compared(data):
        index.truncate_to(BASE + len(data) % 25)
    check_time_index(time_index_entries(data, BASE), BASE, len(data))


def transaction_index(data: bytes) -> None:
    found = tuple(aborted_transactions(data))
    assert len(found) == len(data) // 34
    for place, aborted in enumerate(found):
        assert encode_aborted(aborted)[2:] == data[34 * place + 2 : 34 * place + 34]


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


def snapshot(data: bytes) -> None:
    again = encode_snapshot(parse_snapshot(data))
    assert len(again) <= len(data)
    assert encode_snapshot(parse_snapshot(again)) == again


def with_snapshot_checksum(data: bytearray) -> bytes:
    if len(data) >= 6:
        data[0:2] = b"\0\1"
        data[2:6] = crc32c(data[6:]).to_bytes(4, "big")
    return bytes(data)


def offset_checkpoint(data: bytes) -> None:
    found = parse_offset_checkpoint(data)
    if all(which.topic.split() == [which.topic] for which in found):
        assert parse_offset_checkpoint(encode_offset_checkpoint(found)) == found


def meta_properties(data: bytes) -> None:
    found = parse_meta_properties(data)
    # Written as UTF-8 and read as Latin-1, by Kafka too: only ASCII comes back.
    if is_compared(data) and (found.cluster_id is None or found.cluster_id.isascii()):
        assert parse_meta_properties(encode_meta_properties(found)) == found


def file_named(data: bytes) -> None:
    name = data.decode("latin-1")
    offset = base_offset_of(name)
    assert kind_of(name) in name
    if offset is not None:
        assert int(name.partition(".")[0]) == offset
        assert base_offset_of(file_name(offset, kind_of(name))) == offset


def directory_named(data: bytes) -> None:
    name = data.decode("latin-1")
    found = parse_directory_name(name)
    assert found.name == name
    assert found.partition.topic in name


def group_key(data: bytes) -> None:
    key = read_key(data)
    if not isinstance(key, OtherKey) and "\ufffd" not in str(key):  # Java replaces what is not UTF-8.
        assert key.to_bytes()[2:] == data[2:]


def committed_offset(data: bytes) -> None:
    found = read_committed_offset(data)
    if found.expires_ms is None:
        assert read_committed_offset(found.to_bytes()) == found


def group(data: bytes) -> None:
    found = read_group("g", data)
    assert len(found.members) <= len(data)
    if found.state_time_ms >= 0:
        assert read_group("g", write_group(found)) == found


def metadata_record(data: bytes) -> None:
    record = decode_record(data)
    if record.is_of_later_release:  # Its unknown fields were skipped, so it must not be written again.
        with pytest.raises(UsageError, match="has versions 0 to"):
            record.to_bytes()
    else:
        assert decode_record(record.to_bytes()) == record
    assert record_json(record).isascii() or record.data


def metadata_played(data: bytes) -> None:
    """Play records, each behind a byte with its size, as far as they go."""
    state, position = MetadataState(), 0
    while position < len(data):
        size = data[position]
        with contextlib.suppress(CorruptDataError):
            state.apply(decode_record(data[position + 1 : position + 1 + size]))
        position += 1 + size
    image_of(state)


def metadata_log(data: bytes) -> None:
    if not looks_like_metadata(data):
        raise CorruptDataError("no batch at its beginning")
    replay = Replay(arrange([MetadataFile("any", "any", data)]), rejected=RejectedRecords())
    assert sum(1 for _ in replay.steps()) <= replay.entry_count
    view_of(replay.image(), name="any", source="any")


def with_first_checksum(data: bytearray) -> bytes:
    """Make the checksum of the first batch right, so that its records are reached."""
    size = 12 + int.from_bytes(data[8:12], "big", signed=True)
    if CHECKED_POSITION < size <= len(data):
        data[CRC_POSITION:CHECKED_POSITION] = crc32c(bytes(data[CHECKED_POSITION:size])).to_bytes(4, "big")
    return bytes(data)


ABORTED: Final = [
    encode_aborted(AbortedTransaction(ProducerId(7), Offset(at), Offset(at + 9), Offset(at + 10)))
    for at in range(0, 50, 10)
]
PARTITIONS: Final = {TopicPartition(f"t-{n}", PartitionId(n)): Offset(n * 10**9) for n in range(4)}
RECORDS: Final = (
    broker(1),
    broker(2),
    topic(),
    partition(1, 2),
    change(leader=2, isr=(2,)),
    fenced(1),
    config("a", "b"),
)
PLAYED: Final = b"".join(bytes([len(value)]) + value for value in (record.to_bytes() for record in RECORDS))
SMALL: Final = log_file((broker(1), topic(), partition(1, 2), change(leader=2), fenced(1)))
SNAPSHOT: Final = snapshot_file(3, broker(1), topic(), partition(1, 2), time_ms=START_MS)
READERS: Final = (
    Target(
        "offset index",
        (
            numbers(*(number for place in range(20) for number in (place * 7, place * 100)), sizes=(4,)),
            numbers(1, 0, 5, 40, 0, 0, 0, 0, sizes=(4,)),
            b"",
        ),
        offset_index,
        allowed=(CorruptIndexError,),
    ),
    Target(
        "time index",
        (
            numbers(*(number for place in range(20) for number in (10**12 + place * 7, place)), sizes=(8, 4)),
            numbers(5, 1, 9, 4, 0, 0, 0, 0, sizes=(8, 4)),
            b"",
        ),
        time_index,
        allowed=(CorruptIndexError,),
        share=2,
    ),
    Target(
        "transaction index",
        (b"".join(ABORTED), ABORTED[0]),
        transaction_index,
        allowed=(CorruptTransactionIndexError,),
    ),
    Target(
        "snapshot",
        [encode_snapshot([producer(number) for number in range(count)]) for count in (0, 1, 5)],
        snapshot,
        repair=with_snapshot_checksum,
        allowed=(CorruptSnapshotError,),
    ),
    Target(
        "offset checkpoint",
        (encode_offset_checkpoint(PARTITIONS), b"0\r\n1\ra\t0 5", b"0\n0\n"),
        offset_checkpoint,
        allowed=CHECKPOINTS,
    ),
    Target(
        "epoch checkpoint",
        (b"0\n3\n0 0\n3 17\n9 4000000001\n", b"0\n0\n", b"0\n1\n-1 +5"),
        both_ways(parse_epoch_checkpoint, encode_epoch_checkpoint),
        allowed=CHECKPOINTS,
    ),
    Target(
        "partition.metadata",
        (b"version: 0\ntopic_id: Pza2aPRTs8lDJ5IF8BRtFg", b"version: 3\r\ntopic_id: Pza2aPRTs8lDJ5IF8BRtFg==\n"),
        both_ways(parse_partition_metadata, encode_partition_metadata),
        allowed=CHECKPOINTS,
    ),
    Target(
        "meta.properties",
        (
            b"#\n#Sat\nnode.id=2\ndirectory.id=AAAAAAAAA-kAAAAAAAAAAw\nversion=1\ncluster.id=cluster-1\n",
            b"broker.id : 3\nversion=0\ncluster.id a\\u0041\\\n  b\n",
        ),
        meta_properties,
        allowed=CHECKPOINTS,
        share=2,
    ),
    Target(
        "clean shutdown",
        (b'{"version":0,"brokerEpoch":42}', b'{"brokerEpoch":[[[{"a":1e9}]]]}'),
        parse_clean_shutdown,
        allowed=(),
    ),
    Target(
        "file names",
        (
            b"00000000000000000042.log",
            b"09223372036854775807.timeindex.deleted",
            b"0.snapshot",
            b"partition.metadata",
        ),
        file_named,
        allowed=(),
    ),
    Target(
        "directory names",
        (
            b"events-0",
            b"a.b_c-2147483647",
            *(b"events-3.0123456789abcdef0123456789abcdef-" + role for role in (b"delete", b"future", b"stray")),
        ),
        directory_named,
        allowed=(UnexpectedDirectoryError,),
    ),
    Target("group keys", (OffsetKey("g", "topic", PartitionId(3)).to_bytes(), GroupKey("group").to_bytes()), group_key),
    Target(
        "committed offsets", (COMMITTED.to_bytes(), FLEXIBLE, EXPIRING), committed_offset, allowed=(CorruptDataError,)
    ),
    Target("groups", (write_group(GROUP), write_group(EMPTY_GROUP), b"\0\0" + write_group(EMPTY_GROUP)[2:12]), group),
    Target("metadata records", VALUES, metadata_record, allowed=(CorruptDataError,)),
    Target("metadata records played", (PLAYED, PLAYED[::-1]), metadata_played, allowed=(), share=2),
    Target(
        # A whole file takes milliseconds; what reads its batches and its records is fuzzed for itself.
        "metadata logs",
        (bytes(SMALL.data), bytes(SNAPSHOT.data)),
        metadata_log,
        repair=with_first_checksum,
        share=20,
    ),
)


@pytest.mark.parametrize("target", READERS, ids=lambda target: target.name)
def test_a_damaged_input_is_taken_as_declared_or_refused(target: Target) -> None:
    fuzz(target)


def test_a_committed_offset_of_a_flexible_version_is_read() -> None:
    assert read_committed_offset(FLEXIBLE) == COMMITTED


NAMES_AT_ONCE: Final = 50
"""Names that are in one directory together; opening it costs much more than a name."""

FILES: Final = (
    b"00000000000000000000.log",
    b"00000000000000000001.index",
    b"00000000000000000001.timeindex",
    b"00000000000000000001.txnindex",
    b"00000000000000000001.snapshot",
    b"00000000000000000002.log.cleaned",
    b"00000000000000000000.log.swap",
    b"00000000000000000000.index.swap",
    b"09223372036854775807.timeindex.deleted",
    b"leader-epoch-checkpoint",
    b"partition.metadata",
)
BATCH: Final = build_batch(BatchSpec(), [Record(Offset(0), NOW, b"k", b"v")])
OPTIONS: Final = LogDirOptions(config=made.config())


def test_a_directory_of_damaged_file_names_is_opened_or_refused(input_count: int) -> None:
    names: list[str] = []
    opened = refused = 0
    for damaged in mutated(FILES, input_count, seed=1):
        names.append(name_of(damaged))
        if len(names) == NAMES_AT_ONCE:
            is_open = opens(names, number=opened + refused)
            opened, refused = opened + is_open, refused + (not is_open)
            names.clear()
    assert (opened + refused) * NAMES_AT_ONCE == input_count
    assert opened > 0


def name_of(damaged: bytearray) -> str:
    """Return a name that a file can have."""
    name = damaged.decode("latin-1").replace("/", "_").replace("\0", "") or "empty"
    return "dots" if name in (".", "..") else name


def opens(names: Sequence[str], *, number: int) -> bool:
    """Open a directory with files of these names, closed cleanly or not; return whether it was opened."""
    contents = (b"", BATCH, BATCH[:30], bytes(24))
    files = {f"events-0/{name}": contents[place % len(contents)] for place, name in enumerate(names)}
    for own in ("leader-epoch-checkpoint", "partition.metadata"):
        files.pop(f"events-0/{own}", None)
    if number % 2:
        files[".kafka_cleanshutdown"] = b""
    storage = storage_of(ManualClock(NOW), DiskImage(files, frozenset({"events-0"})))
    kept = set(storage.list("events-0"))
    try:
        log_dir = LogDir.open(storage, OPTIONS, now_ms=NOW, entropy=SplitMix64(1))
    except BrokersideError:
        return False
    except Exception as finding:
        raise AssertionError(f"names {sorted(names)}: {type(finding).__name__}: {finding}") from finding
    (log,) = log_dir.logs.values()
    bases = [segment.base_offset for segment in log.segments]
    assert bases == sorted(set(bases))
    # What is no file of a log stays as it is.
    assert {name for name in kept if "." not in name} <= set(storage.list("events-0"))
    return True
