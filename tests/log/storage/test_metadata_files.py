"""partition.metadata, meta.properties and the clean-shutdown marker, as Kafka reads and writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.clock import ManualClock
from broker.errors import CorruptDataError
from broker.ids import BrokerEpoch, BrokerId
from log.errors import CheckpointError
from log.storage import MemoryStorage
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
