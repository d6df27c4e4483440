"""Small files and directory names of a log directory: what is written, read, and refused as Kafka refuses it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.clock import ManualClock
from broker.entropy import SplitMix64
from broker.errors import CorruptDataError
from broker.ids import BrokerEpoch, BrokerId, LeaderEpoch, Offset, PartitionId, TopicPartition
from log.errors import CheckpointError
from log.storage import MemoryStorage
from log.storage.checkpoints import (
    EPOCH_CHECKPOINT_BYTES_MAX,
    OFFSET_CHECKPOINT_BYTES_MAX,
    EpochEntry,
    parse_epoch_checkpoint,
    parse_offset_checkpoint,
    read_epoch_checkpoint,
    read_offset_checkpoint,
)
from log.storage.directory_names import (
    NAME_LENGTH_MAX,
    DirectoryRole,
    PartitionDirectory,
    UnexpectedDirectoryError,
    directory_name,
    parse_directory_name,
)
from log.storage.metadata_files import (
    METADATA_BYTES_MAX,
    MetaProperties,
    PartitionMetadata,
    encode_clean_shutdown,
    encode_meta_properties,
    encode_partition_metadata,
    encode_properties,
    parse_clean_shutdown,
    parse_meta_properties,
    parse_partition_metadata,
    parse_properties,
    read_clean_shutdown,
    read_meta_properties,
    read_partition_metadata,
    write_clean_shutdown,
    write_meta_properties,
    write_partition_metadata,
)

STORAGE = "org.apache.kafka.common.errors.KafkaStorageException"
ID = "Pza2aPRTs8lDJ5IF8BRtFg"


def test_partition_metadata_is_two_lines_without_an_end() -> None:
    assert encode_partition_metadata(PartitionMetadata(ID)) == f"version: 0\ntopic_id: {ID}".encode()
    assert parse_partition_metadata(f"version: 0\r\ntopic_id: {ID}==\nmore".encode()) == PartitionMetadata(ID)
    assert parse_partition_metadata(f"x:\t7\n:  {ID}: : ".encode()) == PartitionMetadata(ID, 7)


@pytest.mark.parametrize(
    ("text", "message", "kafka_class"),
    [
        ("", "line 1 is missing", "java.lang.NullPointerException"),
        ("version: 0\n", "line 2 is missing", "java.lang.NullPointerException"),
        ("version 0\n", "malformed line 'version 0'", STORAGE),
        ("version:0\n", "malformed line 'version:0'", STORAGE),
        ("version: x\n", "malformed line 'version: x'", STORAGE),
        (": \n", "malformed line ': '", STORAGE),
        ("version: -1\n", "version -1; 0 and above are known", STORAGE),
        ("version: 0\ntopic_id: ", "malformed line 'topic_id: '", STORAGE),
        (
            "version: 0\ntopic_id: AAAA",
            "topic id 'AAAA' is not 16 bytes in Base64",
            "java.lang.IllegalArgumentException",
        ),
        ("version: 0\ntopic_id: " + "A" * 22, "the topic id is zero", STORAGE),
    ],
)
def test_what_kafka_refuses_of_partition_metadata_is_refused(text: str, message: str, kafka_class: str) -> None:
    with pytest.raises(CheckpointError) as refusal:
        parse_partition_metadata(text.encode(), source="p")
    assert (str(refusal.value), refusal.value.kafka_class) == (f"p: {message}", kafka_class)


PROPERTIES = MetaProperties(1, "cluster-1", BrokerId(2), "AAAAAAAAA-kAAAAAAAAAAw")


def test_meta_properties_are_read_back() -> None:
    assert encode_meta_properties(PROPERTIES) == (
        b"#\nnode.id=2\ndirectory.id=AAAAAAAAA-kAAAAAAAAAAw\nversion=1\ncluster.id=cluster-1\n"
    )
    assert parse_meta_properties(encode_meta_properties(PROPERTIES)) == PROPERTIES
    older = MetaProperties(0, None, BrokerId(3))
    assert encode_meta_properties(older) == b"#\nbroker.id=3\nversion=0\n"
    assert parse_meta_properties(b"broker.id=3") == parse_meta_properties(b"version = 0 \\t\nbroker.id=3") == older
    assert parse_meta_properties(b"") == MetaProperties(0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("version=2", "version '2'; 0 and 1 are known"),
        ("version=x", "version 'x'; 0 and 1 are known"),
        ("version=1\ncluster.id=c", "node.id is missing"),
        ("version=1\nnode.id=2", "cluster.id is missing"),
        ("version=1\ncluster.id=c\nnode.id=two", "node.id is 'two', not a number"),
        ("broker.id=", "broker.id is '', not a number"),
        ("directory.id=AAAA", "directory.id 'AAAA' is not 16 bytes in Base64"),
    ],
)
def test_what_kafka_refuses_of_meta_properties_is_refused(text: str, message: str) -> None:
    with pytest.raises(CheckpointError) as refusal:
        parse_meta_properties(text.encode(), source="m")
    assert (str(refusal.value), refusal.value.kafka_class) == (f"m: {message}", "java.lang.RuntimeException")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"a=b\nc : d\ne f\n", {"a": "b", "c": "d", "e": "f"}),
        (b"# x\n  ! y\\\n\n  a\\ b\\=c = d \n", {"a b=c": "d "}),
        (b"a = b\\\n   c\\\r\n d\n", {"a": "bcd"}),
        (b"a=\\u00e9\\t\\x\\\\\nk\\\\=v", {"a": "é\tx\\", "k\\": "v"}),
        (b"a=\xe9", {"a": "é"}),
        (b"a\n=b\n:c", {"a": "", "": "c"}),
        (b"a==b\nc\t:=d", {"a": "=b", "c": "=d"}),
        (b"a=b\\", {"a": "b"}),
        (b"a=b\n\\", {"a": "b", "": ""}),
        (b"a=b\n\\\n", {"a": "b"}),
        (b"a=b\\\\", {"a": "b\\"}),
    ],
)
def test_properties_are_read_as_java_reads_them(text: bytes, found: dict[str, str]) -> None:
    assert parse_properties(text) == found


def test_an_escape_that_is_none_is_refused() -> None:
    for text in (b"a=\\u12", b"a=\\u12g4", b"\\u 123=x"):
        with pytest.raises(CheckpointError, match="malformed escape"):
            parse_properties(text)


@given(
    st.dictionaries(
        st.text("aZ09 .=:#!\\\t\n\r\f", max_size=6), st.text("aZ09 .=:#!\\\t\n\r\f", max_size=6), max_size=4
    )
)
def test_properties_are_read_back(properties: dict[str, str]) -> None:
    assert parse_properties(encode_properties(properties)) == properties


@pytest.mark.parametrize(
    ("data", "epoch"),
    [
        (b'{"version":0,"brokerEpoch":42}', 42),
        (b' {"brokerEpoch":-1,"more":[]} trailing', -1),
        (b'{"version":0}', None),
        (b'{"brokerEpoch":9223372036854775808}', None),
        (b'{"brokerEpoch":true}', None),
        (b"", None),
        (b"[" * 100_000, None),
        (b"\xff", None),
        (b"7", None),
    ],
)
def test_a_marker_may_say_anything(data: bytes, epoch: int | None) -> None:
    assert parse_clean_shutdown(data) == epoch


def test_files_are_written_and_read_and_may_be_missing() -> None:
    storage = MemoryStorage(ManualClock())
    assert read_partition_metadata(storage, "p") is None
    assert read_meta_properties(storage, "m") is None
    assert read_clean_shutdown(storage, "c") is None
    write_partition_metadata(storage, "p", PartitionMetadata(ID))
    write_meta_properties(storage, "m", PROPERTIES)
    write_clean_shutdown(storage, "c", BrokerEpoch(123456))
    write_clean_shutdown(storage, "c", BrokerEpoch(7))
    assert read_partition_metadata(storage, "p") == PartitionMetadata(ID)
    assert read_meta_properties(storage, "m") == PROPERTIES
    assert storage.read("c") == encode_clean_shutdown(BrokerEpoch(7)) == b'{"version":0,"brokerEpoch":7}'
    assert read_clean_shutdown(storage, "c") == 7
    for path, read in (("p", read_partition_metadata), ("m", read_meta_properties), ("c", read_clean_shutdown)):
        storage.open(path).truncate(METADATA_BYTES_MAX + 1)
        with pytest.raises(CorruptDataError, match="at most 65536 are read"):
            read(storage, path)


ILLEGAL = "java.lang.IllegalArgumentException"
NUMBER = "java.lang.NumberFormatException"


def which(topic: str, partition: int) -> TopicPartition:
    return TopicPartition(topic, PartitionId(partition))


@pytest.mark.parametrize(
    "text",
    [
        "0\n1\ntopic 0 5\n",
        "0\r\n1\rtopic 0 5",
        "0\n1\ntopic\t \x0b0\x0c5  \n",
        "+0\n01\ntopic +0 0000000000000000000000005\n",
        "0\n1\ntopic ٠ ٥\n",
        "0\n2\ntopic 0 4\ntopic 0 5\n",
    ],
)
def test_untidy_texts_that_java_takes_are_taken(text: str) -> None:
    assert parse_offset_checkpoint(text.encode()) == {which("topic", 0): 5}


@pytest.mark.parametrize(("text", "offsets"), [("", {}), ("0", {}), ("0\n", {}), ("0\n1\n 7 5", {("", 7): 5})])
def test_files_that_end_early_are_empty_and_a_blank_start_is_an_empty_name(
    text: str, offsets: dict[tuple[str, int], int]
) -> None:
    assert parse_offset_checkpoint(text.encode()) == {which(*name): offset for name, offset in offsets.items()}


@pytest.mark.parametrize(
    ("data", "message", "kafka_class"),
    [
        (b"1\n0\n", "version 1; 0 is known", STORAGE),
        (b"\n0\n", "malformed line ''", STORAGE),
        (b"0 \n0\n", "malformed line '0 '", STORAGE),
        (b"0\n2147483648\n", "malformed line '2147483648'", STORAGE),
        (b"0\n1_0\n", "malformed line '1_0'", STORAGE),
        (b"0\n-1\n", "-1 entries announced", ILLEGAL),
        (b"0\n2\na 0 5\n", "2 entries announced, 1 found", STORAGE),
        (b"0\n0\na 0 5\n", "0 entries announced, 1 found", STORAGE),
        (b"0\n1\n\n", "malformed line ''", STORAGE),
        (b"0\n1\n a 0 5\n", "malformed line ' a 0 5'", STORAGE),
        (b"0\n1\na 0 5 6\n", "malformed line 'a 0 5 6'", STORAGE),
        (b"0\n1\na b 5\n", "'b' is not a number of 32 bits", NUMBER),
        (b"0\n1\na 2147483648 5\n", "'2147483648' is not a number of 32 bits", NUMBER),
        (b"0\n1\na 0 9223372036854775808\n", "'9223372036854775808' is not a number of 64 bits", NUMBER),
        (b"0\n1\na 0 \xf0\x9d\x9f\x8e\n", "'\U0001d7ce' is not a number of 64 bits", NUMBER),
        (b"0\n1\na\xff 0 5\n", "byte 5 is not UTF-8", STORAGE),
    ],
)
def test_what_kafka_refuses_is_refused_with_its_class(data: bytes, message: str, kafka_class: str) -> None:
    with pytest.raises(CheckpointError) as refusal:
        parse_offset_checkpoint(data, source="d/c")
    assert (str(refusal.value), refusal.value.kafka_class) == (f"d/c: {message}", kafka_class)


def test_an_epoch_line_has_two_fields() -> None:
    assert parse_epoch_checkpoint(b"0\n1\n3 17 \n") == (EpochEntry(LeaderEpoch(3), Offset(17)),)
    for text in (b"0\n1\n3\n", b"0\n1\n3 17 1\n"):
        with pytest.raises(CheckpointError, match="malformed line"):
            parse_epoch_checkpoint(text)
    with pytest.raises(CheckpointError, match="'x' is not a number of 32 bits"):
        parse_epoch_checkpoint(b"0\n1\nx 17\n")


def test_files_far_too_large_are_refused_before_they_are_read() -> None:
    storage = MemoryStorage(ManualClock())
    for read, size_bytes_max in (
        (read_offset_checkpoint, OFFSET_CHECKPOINT_BYTES_MAX),
        (read_epoch_checkpoint, EPOCH_CHECKPOINT_BYTES_MAX),
    ):
        storage.open("c", create=True).truncate(size_bytes_max + 1)
        with pytest.raises(CorruptDataError, match=f"at most {size_bytes_max} are read"):
            read(storage, "c")
    assert (read_offset_checkpoint(storage, "none"), read_epoch_checkpoint(storage, "none")) == ({}, ())


UNIQUE_ID = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("name", "topic", "partition", "role"),
    [
        ("orders-0", "orders", 0, DirectoryRole.CURRENT),
        ("a.b-c_d-17", "a.b-c_d", 17, DirectoryRole.CURRENT),
        ("a--1", "a-", 1, DirectoryRole.CURRENT),
        ("a-007", "a", 7, DirectoryRole.CURRENT),
        ("a-+3", "a", 3, DirectoryRole.CURRENT),
        (f"orders-0.{UNIQUE_ID}-delete", "orders", 0, DirectoryRole.DELETE),
        (f"orders-0.{UNIQUE_ID}-future", "orders", 0, DirectoryRole.FUTURE),
        (f"or.ders-2.{UNIQUE_ID}-stray", "or.ders", 2, DirectoryRole.STRAY),
    ],
)
def test_a_name_has_a_partition_and_a_role(name: str, topic: str, partition: int, role: DirectoryRole) -> None:
    expected = PartitionDirectory(name, TopicPartition(topic, PartitionId(partition)), role)
    assert parse_directory_name(name) == expected


@pytest.mark.parametrize(
    "name",
    ["", "orders", "-0", "orders-", "orders-x", "orders-2147483648", "orders-delete", "a-0-delete", "a-b.c-future"],
)
def test_a_name_that_kafka_refuses_is_refused(name: str) -> None:
    with pytest.raises(UnexpectedDirectoryError) as refusal:
        parse_directory_name(name)
    assert str(refusal.value) == (
        f"directory {name!r} is not named topic-partition, nor topic-partition.id-delete and the like"
    )


@pytest.mark.parametrize("role", [DirectoryRole.DELETE, DirectoryRole.STRAY])
def test_a_long_topic_is_cut_so_that_the_name_fits(role: DirectoryRole) -> None:
    partition = TopicPartition("t" * 249, PartitionId(3))
    name = directory_name(partition, role, SplitMix64(1))
    assert len(name) == NAME_LENGTH_MAX
    assert parse_directory_name(name).partition.topic == "t" * (NAME_LENGTH_MAX - len(f"-3.{UNIQUE_ID}{role.value}"))


def test_a_future_name_is_not_cut() -> None:
    partition = TopicPartition("t" * 249, PartitionId(3))
    assert len(directory_name(partition, DirectoryRole.FUTURE, SplitMix64(1))) == 249 + len(f"-3.{UNIQUE_ID}-future")
