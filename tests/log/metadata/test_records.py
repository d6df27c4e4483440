"""One record: its bytes, its JSON, and what is said of one that cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from broker.errors import CorruptDataError, UsageError
from broker.ids import Offset
from broker.units import TimeMs
from broker.wire.fields import UUID_ZERO
from log import Record, batches_in
from log.metadata import MetadataRecord, RecordType, decode_control, decode_record, record_json
from log.metadata.json_text import double_text
from log.metadata.records import ControlRecord
from log.record import ControlType
from tests.log.metadata.drawn import RECORDS
from tests.log.metadata.made import REAL, REAL_NEWEST, made, real_files


@given(record=RECORDS)
def test_what_is_written_is_read_again(record: MetadataRecord) -> None:
    assert decode_record(record.to_bytes()) == record


@pytest.mark.parametrize("folder", [REAL, REAL_NEWEST], ids=lambda folder: folder.name)
def test_every_record_of_a_real_log_is_written_with_the_bytes_it_has(folder: Path) -> None:
    count = 0
    for file in real_files(folder):
        for batch in batches_in(file.data):
            for record in batch.records():
                if batch.is_control:
                    found = decode_control(record)
                    assert (found.key(), found.value()) == (record.key, record.value)
                else:
                    assert record.value is not None
                    assert decode_record(record.value).to_bytes() == record.value
                count += 1
    assert count > 300


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            "00 00 00 00",
            "at byte 1: Could not deserialize metadata record with frame version 0. "
            "Note that upgrades from the preview release of KRaft in 2.8 to newer versions are not supported.",
        ),
        (
            "02 00 00",
            "at byte 1: Could not deserialize metadata record due to unknown frame version 2"
            "(only frame version 1 is supported)",
        ),
        (
            "01 63 00 00",
            "at byte 3: org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id 99",
        ),
        ("01 14 01 00 00", "at byte 4: Found 1 byte(s) of garbage after 20"),
        ("01 14 00 00 00", "at byte 4: Found 1 byte(s) of garbage after 20"),
        ("01 80 80 02 00", "at byte 4: Value for type was too large."),
        ("", "at byte 0: Error while reading frame version"),
        ("01 09 00 00", "at byte 3: REMOVE_TOPIC_RECORD: a field of 16 bytes does not fit into the 1 that are left"),
        (
            "01 1a 00 00 00",
            "at byte 4: REMOVE_DELEGATION_TOKEN_RECORD: non-nullable field tokenId was serialized as null",
        ),
        (
            "01 1a 00 ff ff ff ff 07 00",
            "at byte 8: REMOVE_DELEGATION_TOKEN_RECORD: "
            "a length of 2147483646 does not fit into the 1 bytes that are left",
        ),
        ("01 14 00 02 05 00 05 00", "at byte 8: NO_OP_RECORD: tag 5 follows tag 5; tags ascend"),
        ("01 17 00 01 00 03 02 61", "at byte 8: BEGIN_TRANSACTION_RECORD: name takes 2 bytes, and its tag says 3"),
    ],
)
def test_a_record_that_cannot_be_read_says_why(data: str, message: str) -> None:
    with pytest.raises(CorruptDataError) as refusal:
        decode_record(bytes.fromhex(data))
    assert str(refusal.value) == message


def test_a_tag_of_a_later_version_is_refused_and_an_unknown_one_passed_over() -> None:
    change = made(RecordType.PARTITION_CHANGE_RECORD, partitionId=1, directories=(UUID_ZERO,)).to_bytes()
    with pytest.raises(CorruptDataError, match="PARTITION_CHANGE_RECORD: tag 8 is not valid for version 0"):
        decode_record(change[:2] + b"\0" + change[3:])
    assert decode_record(bytes.fromhex("01 14 00 01 63 02 aa bb")) == made(RecordType.NO_OP_RECORD)


def test_a_later_version_is_read_as_the_newest_without_the_tagged_fields_that_it_adds() -> None:
    endpoint = {"name": "P", "host": "h", "port": 9092, "securityProtocol": 0}
    known = made(RecordType.REGISTER_BROKER_RECORD, brokerId=3, rack="a", endPoints=(endpoint,), cordonedLogDirs=())
    data = known.to_bytes()
    assert data[-4:] == b"\x01\x01\x01\x01"  # One tagged field: tag 1, one byte, an empty array.
    later = decode_record(data[:2] + b"\5" + data[3:-4] + b"\x02\x01\x01\x01\x02\x03abc")
    assert (later.version, later.is_of_later_release) == (5, True)
    assert later.data == known.data
    assert not known.is_of_later_release
    with pytest.raises(UsageError, match="REGISTER_BROKER_RECORD has versions 0 to 4, not 5"):
        later.to_bytes()


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (MetadataRecord(RecordType.NO_OP_RECORD, 1, {}), "NO_OP_RECORD has versions 0 to 0, not 1"),
        (MetadataRecord(RecordType.TOPIC_RECORD, 0, {"nam": "a"}), "there is no field nam; there are name, topicId"),
        (MetadataRecord(RecordType.TOPIC_RECORD, 0, {"name": None}), "name is None, which it may not be"),
        (MetadataRecord(RecordType.TOPIC_RECORD, 0, {"topicId": "x"}), "topicId is 'x'; it must be uuid"),
        (
            MetadataRecord(RecordType.PARTITION_RECORD, 0, {"directories": (UUID_ZERO,)}),
            "version 0 has no field directories",
        ),
    ],
)
def test_a_record_that_cannot_be_written_says_why(record: MetadataRecord, message: str) -> None:
    with pytest.raises(UsageError) as refusal:
        record.to_bytes()
    assert str(refusal.value) == message


def test_json_shows_tagged_fields_only_where_they_are_not_the_default() -> None:
    record = made(RecordType.PARTITION_CHANGE_RECORD, partitionId=3, isr=(1,), leader=-1)
    expected = (
        '{"type":"PARTITION_CHANGE_RECORD","version":2,"data":'
        f'{{"partitionId":3,"topicId":"{UUID_ZERO}","isr":[1],"leader":-1}}}}'
    )
    assert record_json(record) == expected
    assert record_json(made(RecordType.TOPIC_RECORD, name='a"\\\x1f\n é')) == (
        f'{{"type":"TOPIC_RECORD","version":0,"data":{{"name":"a\\"\\\\\\u001F\\n é","topicId":"{UUID_ZERO}"}}}}'
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1048576.0, "1048576.0"),
        (1e7, "1.0E7"),
        (9999999.0, "9999999.0"),
        (0.001, "0.001"),
        (0.00012, "1.2E-4"),
        (-0.0, "-0.0"),
        (123.456, "123.456"),
        (float("-inf"), "-Infinity"),
        (float("nan"), "NaN"),
    ],
)
def test_a_fraction_looks_as_in_java(value: float, text: str) -> None:
    assert double_text(value) == text


@pytest.mark.parametrize("version", [7, -1])
def test_a_control_record_of_an_unknown_version_is_read_as_the_nearest_known(version: int) -> None:
    record = ControlRecord(ControlType.SNAPSHOT_HEADER, {"version": version, "lastContainedLogTimestamp": 5})
    found = decode_control(Record(Offset(0), TimeMs(0), record.key(), record.value()))
    assert found == record
