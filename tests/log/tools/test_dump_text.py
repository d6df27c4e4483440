"""The words of kafka-dump-log, on whole and on damaged files; the expected lines are what Kafka printed."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from broker.errors import CorruptDataError
from broker.ids import Offset, ProducerId
from broker.units import TimeMs
from log.batches.build import BatchSpec, build_batch
from log.partition.producer_entry import ProducerEntry, encode_snapshot
from log.record import Record
from log.storage import FileStorage
from log.tools.dump_options import DumpOptions
from log.tools.dump_text import file_lines
from log.tools.dump_topics import TOPIC_DECODERS, decoded
from log.tools.findings import Problems, java_map_order
from log.tools.sources import SourceFile
from tests.kafka.dumps import dumped
from tests.log.cli.test_commands import answer
from tests.log.metadata.made import REAL_LOG, REAL_NEWEST
from tests.log.samples import DIRECTORY, write_sample

HEADER_BYTES = 61


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    write_sample("none", tmp_path)
    return tmp_path / DIRECTORY


def patch(path: Path, position: int, data: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[position : position + len(data)] = data
    path.write_bytes(content)


def second_log(partition: Path) -> Path:
    return sorted(partition.glob("*.log"))[1]


def test_the_tool_takes_the_offset_before_a_file_for_minus_one(partition: Path) -> None:
    path = second_log(partition)
    deep = DumpOptions(deep=True)
    assert dumped([path], deep).err == f"Non-consecutive offsets in {path}\n  -1 is followed by {int(path.stem)}\n"
    assert dumped([path], DumpOptions(deep=True, start_offset=int(path.stem) + 1)).err == ""


def test_an_entry_that_points_at_no_batch_ends_the_dump(partition: Path) -> None:
    """A killed broker leaves a preallocated index of zeros beside an empty log: Kafka throws NoSuchElementException."""
    base = max(partition.glob("*.log"))
    base.write_bytes(b"")
    index = base.with_suffix(".index")
    index.write_bytes(bytes(80))
    found = dumped([index], DumpOptions())
    assert found.out == f"Dumping {index}\n"
    assert found.thrown == (
        f"{index}: its entry for offset {int(base.stem)} points to byte 0 of the log, where no whole batch is"
    )


def test_damage_behind_the_sought_batch_ends_the_dump_of_a_time_index(partition: Path) -> None:
    log = second_log(partition)
    content = log.read_bytes()
    positions = [0]
    while positions[-1] < len(content):
        positions.append(positions[-1] + 12 + struct.unpack_from(">i", content, positions[-1] + 8)[0])
    patch(log, positions[-2] + 8, struct.pack(">i", 3))
    index = log.with_suffix(".timeindex")
    assert dumped([index], DumpOptions()).thrown is not None


def test_a_timestamp_of_the_index_that_is_not_its_batchs_largest_is_reported(partition: Path) -> None:
    index = second_log(partition).with_suffix(".timeindex")
    assert dumped([index], DumpOptions()).err == ""
    (timestamp,) = struct.unpack_from(">q", index.read_bytes())
    patch(index, 0, struct.pack(">q", timestamp - 1))
    assert dumped([index], DumpOptions()).err == (
        f"Found timestamp mismatch in :{index}\n  Index timestamp: {timestamp - 1}, log timestamp: {timestamp}\n"
    )


def test_an_entry_that_is_not_the_last_offset_of_its_batch_is_reported_with_both_offsets(partition: Path) -> None:
    index = second_log(partition).with_suffix(".index")
    whole = dumped([index], DumpOptions())
    assert whole.err == ""
    relative, position = struct.unpack_from(">ii", index.read_bytes(), 8)
    indexed, known = int(index.stem) + relative - 1, int(index.stem) + relative
    patch(index, 8, struct.pack(">i", relative - 1))
    mismatch = f"Mismatches in :{index}\n  Index offset: {indexed}, log offset: {known}\n"
    found = dumped([index], DumpOptions())
    assert found.err == mismatch
    line = f"offset: {indexed} position: {position}"
    assert found.out == whole.out.replace(f"offset: {known} position: {position}", line)
    assert dumped([index], DumpOptions(verify_index_only=True)).err == mismatch
    assert line not in dumped([index], DumpOptions(verify_index_only=True)).out


def test_a_snapshot_has_no_blank_at_its_end(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000007.snapshot"
    path.write_bytes(encode_snapshot([ProducerEntry(ProducerId(7))]))
    line = dumped([path], DumpOptions()).out.splitlines()[1]
    assert line.endswith("lastTimestamp: -1")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "null"),
        ("0002", "Snapshot contained an unknown file version 2"),
        ("0001 00000000 ffffffff", "non-nullable field producerEntries was serialized as null"),
        (
            "0001 00000000 00000009 00",
            "Tried to allocate a collection of size 9, but there are only 1 bytes remaining.",
        ),
        ("0001 00000000 00000001 00000000", "null"),
    ],
)
def test_a_snapshot_that_cannot_be_read_is_reported_as_kafka_reports_it_and_as_damage(
    tmp_path: Path, content: str, said: str
) -> None:
    path = tmp_path / "00000000000000000007.snapshot"
    path.write_bytes(bytes.fromhex(content))
    found = answer("dump", path)
    assert found.status == 1
    assert found.out == f"Dumping {path}\n"
    assert found.err.splitlines()[0] == f"Snapshot failed schema validation: {said}"
    assert str(path) in found.err.splitlines()[1]


def test_a_wrong_checksum_of_a_snapshot_has_kafkas_words(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000007.snapshot"
    path.write_bytes(bytes.fromhex("0001 00000001 00000000"))
    said = "Snapshot is corrupt (CRC is no longer valid). Stored crc: 1. Computed crc: 1214729159"
    assert answer("dump", path).err.splitlines()[0] == said


def test_records_before_the_damaged_one_are_printed(partition: Path) -> None:
    path = second_log(partition)
    (size,) = struct.unpack_from(">b", path.read_bytes(), HEADER_BYTES)
    patch(path, HEADER_BYTES + 1 + size // 2, b"\x01")  # The size of the second record, now negative.
    found = dumped([path], DumpOptions(deep=True))
    assert found.thrown is not None
    assert found.thrown.startswith(f"{path} at byte 0: record 1 of 3: ")
    assert found.out.count("\n| ") == 1


def test_a_message_whose_value_runs_past_it_shows_the_size_that_it_claims(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(build_batch(BatchSpec(magic=0), [Record(Offset(0), TimeMs(-1), None, b"v")]))
    patch(path, 22, struct.pack(">i", 500))
    line = dumped([path], DumpOptions(deep=True)).out.splitlines()[-1]
    assert line.startswith("| offset: 0 NoTimestampType: -1 keySize: -1 valueSize: 500 isValid: false crc: ")
    assert line[-1].isdigit()
    assert dumped([path], DumpOptions(deep=True, print_data=True)).thrown is not None


def test_a_negative_magic_ends_the_dump(partition: Path) -> None:
    path = second_log(partition)
    patch(path, 16, b"\x80")
    assert dumped([path], DumpOptions()).thrown == f"{path} at byte 0: Invalid magic used in LegacyRecord: -128"


def test_files_with_problems_are_reported_in_the_order_of_the_tools_hash_map() -> None:
    """Fourteen files with a gap each, as 4.3.1 printed them; 6 and 12 share a bin of the table."""
    files = [f"/tmp/fileorder/d/{number:020}.log" for number in range(14)]

    def numbers(ordered: list[str]) -> list[int]:
        return [files.index(file) for file in ordered]

    calls = [file for file in files for _ in range(2)]
    assert numbers(java_map_order(calls)) == [0, 13, 7, 2, 5, 9, 11, 12, 6, 1, 4, 3, 8, 10]


def test_problems_name_the_absolute_path(partition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = second_log(partition)
    monkeypatch.chdir(partition)
    found = answer("dump", "--deep-iteration", path.name)
    assert found.lines[0] == f"Dumping {path.name}"
    assert found.err.splitlines()[0] == f"Non-consecutive offsets in {path}"


def test_the_size_that_is_read_at_an_index_entry_is_an_option(partition: Path) -> None:
    index = second_log(partition).with_suffix(".index")
    assert answer("dump", index).status == 0
    found = answer("dump", "--max-message-size", "20", index)
    assert found.status == 1
    assert "where no whole batch is" in found.err


def test_kafkas_decoder_classes_decode_numbers_and_print_data(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    records = [Record(Offset(0), TimeMs(0), b"\xff\xff\xff\xfe", b"\0\0\0\0\0\0\1\0more")]
    path.write_bytes(build_batch(BatchSpec(), records))
    classes = "org.apache.kafka.tools.api."
    given = ("--key-decoder-class", f"{classes}IntegerDecoder", "--value-decoder-class", f"{classes}LongDecoder")
    assert answer("dump", *given, path).lines[-1].endswith("headerKeys: [] key: -2 payload: 256")
    short = answer("dump", "--key-decoder-class", f"{classes}LongDecoder", path)
    assert short.status == 1
    assert "4 bytes cannot be decoded as a number of 8" in short.err


def test_the_header_of_a_batch_that_is_too_short_reaches_into_the_next_one(tmp_path: Path) -> None:
    """As Kafka's file reader reads it; where the file ends it has nothing to read."""
    path = tmp_path / "00000000000000000000.log"
    batch = build_batch(BatchSpec(), [Record(Offset(0), TimeMs(0), None, b"v")])
    short = batch[:8] + struct.pack(">i", 35) + batch[12:47]
    path.write_bytes(short)
    assert dumped([path], DumpOptions()).thrown == f"{path} at byte 0: the file ends inside the header of a batch"
    path.write_bytes(short + b"\xff" * 14 + bytes(100))
    line = dumped([path], DumpOptions()).out.splitlines()[2]
    assert " count: -1 baseSequence: -1 " in line
    assert " size: 47 " in line
    assert line.endswith("isvalid: false")


DUMPED = REAL_NEWEST / "internal_topics"
NAME = "00000000000000000000.log"


def lines_of(path: Path, options: DumpOptions) -> list[str]:
    file = SourceFile(FileStorage(path.parent, read_only=True), path.name, str(path))
    return list(file_lines(file, options, Problems()))[1:]


@pytest.mark.parametrize("decoder", TOPIC_DECODERS)
def test_random_records_of_all_types_are_dumped_as_kafka_dumped_them(decoder: str) -> None:
    """The records are of Kafka's own classes at random, one in three damaged; the text is what its tool printed."""
    found = lines_of(DUMPED / decoder / NAME, DumpOptions(deep=True, print_data=True, topic_decoder=decoder))
    expected = (DUMPED / decoder / "dumped.txt").read_text(encoding="utf-8")
    assert "\n".join(found) + "\n" == expected
    assert expected.count("skipping") > 10


def test_the_options_of_the_command_are_those_of_kafkas_tool() -> None:
    for decoder in TOPIC_DECODERS:
        found = answer("dump", f"--{decoder}-decoder", DUMPED / decoder / NAME)
        assert sum(" payload: " in line or " key: " in line for line in found.lines) > 100
    both = answer("dump", "--offsets-decoder", "--transaction-log-decoder", DUMPED / "offsets" / NAME)
    assert both.status == 2
    assert "name one decoder, not several" in both.err


def test_a_record_without_a_key_ends_the_dump() -> None:
    with pytest.raises(CorruptDataError, match="at offset 7 using the specified decoder"):
        decoded(Record(Offset(7), TimeMs(0), None, b""), "offsets")


def test_a_leader_change_is_printed_with_its_fields() -> None:
    found = lines_of(REAL_LOG / NAME, DumpOptions(deep=True))
    shown = 'LeaderChange: {"version":0,"leaderId":100,"voters":[{"voterId":100}],'
    assert any(shown in line for line in found)
