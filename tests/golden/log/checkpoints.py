"""Golden kind `checkpoints`: the text of each checkpoint and metadata file, read and written back, and malformed ones.

Reading has to give Kafka's entries. Writing has to give Kafka's bytes, but where Kafka leaves the order open (offset
checkpoints, meta.properties): there the lines have to be the same ones, and of meta.properties those that are no
comments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from broker.ids import BrokerEpoch, Offset, TopicPartition
from broker.wire.fields import decode_uuid
from log.errors import CheckpointError
from log.storage.checkpoints import (
    CLEANER_FILE,
    LEADER_EPOCH_FILE,
    LOG_START_FILE,
    RECOVERY_POINT_FILE,
    REPLICATION_FILE,
    encode_epoch_checkpoint,
    encode_offset_checkpoint,
    parse_epoch_checkpoint,
    parse_offset_checkpoint,
)
from log.storage.metadata_files import (
    CLEAN_SHUTDOWN_FILE,
    META_PROPERTIES_FILE,
    PARTITION_METADATA_FILE,
    encode_clean_shutdown,
    encode_meta_properties,
    encode_partition_metadata,
    parse_clean_shutdown,
    parse_meta_properties,
    parse_partition_metadata,
)
from tests.golden.log.cases import Json
from tests.golden.runners import MalformedCaseError

_STORAGE_EXCEPTION: Final = "KafkaStorageException"


def run(case: Mapping[str, Json], folder: Path) -> str | None:
    """Return the first difference, or None."""
    differences = [f"{given['file']}: {found}" for given in case["files"] if (found := _file_difference(given, folder))]
    differences += [
        f"parse of {given['text']!r}: {found}" for given in case["parse"] if (found := _parse_difference(given))
    ]
    return differences[0] if differences else None


def _file_difference(given: Mapping[str, Json], folder: Path) -> str | None:
    name = given["file"]
    check = next((check for start, check in _CHECKS.items() if name.startswith(start)), None)
    if check is None:
        raise MalformedCaseError(f"unknown file {name!r}; known are {', '.join(sorted(_CHECKS))}")
    data = (folder / name).read_bytes()
    return _different(data.decode("utf-8"), given["text"]) or check(given, data)


def _offset_checkpoint(given: Mapping[str, Json], data: bytes) -> str | None:
    offsets = parse_offset_checkpoint(data)
    lines = encode_offset_checkpoint(offsets).splitlines()
    return _different(_rows(offsets), _sorted(given["entries"])) or _different(
        [*lines[:2], *sorted(lines[2:])], [*data.splitlines()[:2], *sorted(data.splitlines()[2:])]
    )


def _epoch_checkpoint(given: Mapping[str, Json], data: bytes) -> str | None:
    entries = parse_epoch_checkpoint(data)
    found = [[entry.epoch, entry.start_offset] for entry in entries]
    return _different(found, given["entries"]) or _different(encode_epoch_checkpoint(entries), data)


def _partition_metadata(given: Mapping[str, Json], data: bytes) -> str | None:
    metadata = parse_partition_metadata(data)
    topic_id = decode_uuid(metadata.topic_id) or b""
    halves = [int.from_bytes(topic_id[:8], signed=True), int.from_bytes(topic_id[8:], signed=True)]
    return (
        _different(metadata.topic_id, given["topicId"])
        or _different(halves, [given["topicIdMsb"], given["topicIdLsb"]])
        or _different(encode_partition_metadata(metadata), data)
    )


def _meta_properties(given: Mapping[str, Json], data: bytes) -> str | None:
    found = parse_meta_properties(data)
    fields = {
        "cluster.id": found.cluster_id,
        "directory.id": found.directory_id,
        "node.id": found.node_id,
        "version": found.version,
    }
    entries = [[key, str(value)] for key, value in fields.items() if value is not None]
    return _different(entries, given["entries"]) or _different(
        _without_comments(encode_meta_properties(found)), _without_comments(data)
    )


def _clean_shutdown(given: Mapping[str, Json], data: bytes) -> str | None:
    epoch = parse_clean_shutdown(data)
    return _different(epoch, given["brokerEpoch"]) or _different(
        encode_clean_shutdown(BrokerEpoch(given["brokerEpoch"])), data
    )


def _parse_difference(given: Mapping[str, Json]) -> str | None:
    try:
        offsets = parse_offset_checkpoint(given["text"].encode("utf-8"))
    except CheckpointError as refusal:
        simple_name = refusal.kafka_class.rpartition(".")[2]
        cause = "IOException" if simple_name == _STORAGE_EXCEPTION else None
        return _different([simple_name, cause], [given.get("exception"), given.get("cause")])
    return _different(_rows(offsets), _sorted(given.get("entries")))


def _rows(offsets: Mapping[TopicPartition, Offset]) -> Json:
    return _sorted([[which.topic, which.partition, offset] for which, offset in offsets.items()])


def _sorted(entries: Json) -> Json:
    """Return entries in one order, as Kafka reads them into a hash map; None where it refused them."""
    return None if entries is None else sorted(entries)


def _without_comments(data: bytes) -> list[bytes]:
    return sorted(line for line in data.splitlines() if not line.startswith(b"#"))


def _different(ours: Json, theirs: Json) -> str | None:
    return None if ours == theirs else f"is {ours!r}, expected {theirs!r}"


_CHECKS: Final[Mapping[str, Callable[[Mapping[str, Json], bytes], str | None]]] = {
    RECOVERY_POINT_FILE: _offset_checkpoint,
    REPLICATION_FILE: _offset_checkpoint,
    LOG_START_FILE: _offset_checkpoint,
    CLEANER_FILE: _offset_checkpoint,
    LEADER_EPOCH_FILE: _epoch_checkpoint,
    PARTITION_METADATA_FILE: _partition_metadata,
    META_PROPERTIES_FILE: _meta_properties,
    CLEAN_SHUTDOWN_FILE: _clean_shutdown,
}
