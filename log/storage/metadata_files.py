"""Read and write partition.metadata, meta.properties and the clean-shutdown marker.

Source: Kafka storage/checkpoint/{PartitionMetadataFile, CleanShutdownFileHandler},
metadata/properties/{MetaProperties, PropertiesUtils}, 4.0 (KIP-516, KIP-631, KIP-858, KIP-966).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from broker.errors import shorten
from broker.ids import BrokerEpoch, BrokerId
from broker.java.numbers import parse_number
from broker.units import KIB
from broker.wire.fields import UUID_SIZE_BYTES, decode_uuid, encode_uuid
from log.errors import CheckpointError
from log.storage.checkpoints import decode_text, lines_of, malformed, split_fields
from log.storage.protocol import Buffer, Storage

_BLANKS: Final = " \t\f"
_KEY: Final = re.compile(r"((?:\\.|[^\\=: \t\f])*)\\?[ \t\f]*[=:]?[ \t\f]*", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(u(.{0,4})|.|$)", re.DOTALL)
_HEX: Final = re.compile(r"[0-9A-Fa-f]{4}")
_NAMED_SIGNS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ILLEGAL_ARGUMENT: Final = "java.lang.IllegalArgumentException"


def parse_properties(data: Buffer, *, source: str = "") -> dict[str, str]:
    """Return the properties in the file's order; raise CheckpointError for a malformed escape."""
    found = {}
    for line in _logical_lines(bytes(data).decode("latin-1")):
        key = _KEY.match(line)
        assert key is not None, line  # An empty key matches.
        found[_unescaped(key[1], source)] = _unescaped(line[key.end() :], source)
    return found


def encode_properties(properties: Mapping[str, str]) -> bytes:
    """Return the properties file in the order given, in UTF-8 as Kafka writes it."""
    lines = [f"{_escaped(key, is_key=True)}={_escaped(value)}\n" for key, value in properties.items()]
    return "".join(["#\n", *lines]).encode("utf-8")


def _logical_lines(text: str) -> Iterator[str]:
    """Yield the lines that are neither blank nor comments; a backslash at the end joins the next to a line."""
    parts: list[str] = []
    for natural in lines_of(text):
        line = natural.lstrip(_BLANKS)
        if not parts and (not line or line[0] in "#!"):
            continue
        if (len(line) - len(line.rstrip("\\"))) % 2:
            parts.append(line[:-1])
            continue
        yield "".join([*parts, line])
        parts.clear()
    if any(parts) or (parts and text.endswith("\\")):  # An empty line, joined to nothing, is one all the same.
        yield "".join(parts)


def _unescaped(text: str, source: str) -> str:
    def sign(match: re.Match[str]) -> str:
        if match[2] is None:
            return _NAMED_SIGNS.get(match[1], match[1])
        if _HEX.fullmatch(match[2]) is None:
            raise CheckpointError(f"malformed escape {match[0]!r}", source=source, kafka_class=_ILLEGAL_ARGUMENT)
        return chr(int(match[2], 16))

    return _ESCAPE.sub(sign, text)


def _escaped(text: str, *, is_key: bool = False) -> str:
    signs = re.sub(r"[\\=:#!]", lambda match: "\\" + match[0], text)
    for letter, sign in _NAMED_SIGNS.items():
        signs = signs.replace(sign, "\\" + letter)
    if is_key:
        return signs.replace(" ", "\\ ")
    return "\\" + signs if signs.startswith(" ") else signs


PARTITION_METADATA_FILE: Final = "partition.metadata"
META_PROPERTIES_FILE: Final = "meta.properties"
CLEAN_SHUTDOWN_FILE: Final = ".kafka_cleanshutdown"

METADATA_BYTES_MAX: Final = 64 * KIB  # Two to five short lines, or one.

_TRIMMED: Final = "".join(chr(code) for code in range(ord(" ") + 1))  # By Java's `trim`, which only the version gets.
_AFTER_LABEL: Final = re.compile(r":[ \t\n\x0b\f\r]+")
_NULL_POINTER: Final = "java.lang.NullPointerException"
_RUNTIME: Final = "java.lang.RuntimeException"


@attrs.frozen
class PartitionMetadata:
    """Hold the topic id in a partition's directory, in Kafka's 22 characters."""

    topic_id: str
    version: int = 0


@attrs.frozen
class MetaProperties:
    """Hold the cluster, node and directory ids of a log directory; directory ids in Kafka's 22 characters."""

    version: int
    cluster_id: str | None = None
    node_id: BrokerId | None = None
    directory_id: str | None = None


def encode_partition_metadata(metadata: PartitionMetadata) -> bytes:
    """Return the content of `partition.metadata`."""
    return f"version: {metadata.version}\ntopic_id: {metadata.topic_id}".encode("ascii")


def parse_partition_metadata(data: Buffer, *, source: str = "") -> PartitionMetadata:
    """Return the content of `partition.metadata`; labels are ignored, as in Kafka. Raises CheckpointError."""
    lines = lines_of(decode_text(data, source=source))
    version_text = _after_label(lines, 0, source)
    version = parse_number(version_text, bits=32)
    if version is None:
        raise malformed(lines[0], source)
    if version < 0:
        raise CheckpointError(f"version {version}; 0 and above are known", source=source)
    topic_id_text = _after_label(lines, 1, source)
    topic_id = decode_uuid(topic_id_text)
    if topic_id is None:
        raise CheckpointError(
            f"topic id {shorten(topic_id_text)!r} is not 16 bytes in Base64",
            source=source,
            kafka_class=_ILLEGAL_ARGUMENT,
        )
    if topic_id == bytes(UUID_SIZE_BYTES):
        raise CheckpointError("the topic id is zero", source=source)
    return PartitionMetadata(encode_uuid(topic_id), version)


def read_partition_metadata(storage: Storage, path: str) -> PartitionMetadata | None:
    """Return the content of the file, None if it is missing. Raises CheckpointError, StorageError."""
    if not storage.exists(path):
        return None
    return parse_partition_metadata(storage.read(path, size_bytes_max=METADATA_BYTES_MAX), source=path)


def write_partition_metadata(storage: Storage, path: str, metadata: PartitionMetadata) -> None:
    """Replace `partition.metadata` atomically."""
    storage.replace(path, encode_partition_metadata(metadata))


def encode_meta_properties(properties: MetaProperties) -> bytes:
    """Return the content of `meta.properties`, keys in the order of Java's hash table."""
    fields = {
        "node.id" if properties.version else "broker.id": properties.node_id,
        "directory.id": properties.directory_id,
        "version": properties.version,
        "cluster.id": properties.cluster_id,
    }
    return encode_properties({key: str(value) for key, value in fields.items() if value is not None})


def parse_meta_properties(data: Buffer, *, source: str = "") -> MetaProperties:
    """Return the properties in `meta.properties`. Raises CheckpointError."""
    found = parse_properties(data, source=source)
    version = parse_number(found.get("version", "0").strip(_TRIMMED), bits=32)
    if version not in (0, 1):
        raise CheckpointError(
            f"version {shorten(found['version'])!r}; 0 and 1 are known", source=source, kafka_class=_RUNTIME
        )
    node_key = "node.id" if version else "broker.id"
    if version and node_key not in found:
        raise CheckpointError(f"{node_key} is missing", source=source, kafka_class=_RUNTIME)
    node_id = parse_number(found[node_key], bits=32) if node_key in found else None
    if node_key in found and node_id is None:
        raise CheckpointError(
            f"{node_key} is {shorten(found[node_key])!r}, not a number", source=source, kafka_class=_RUNTIME
        )
    directory_id = decode_uuid(found["directory.id"]) if "directory.id" in found else None
    if "directory.id" in found and directory_id is None:
        raise CheckpointError(
            f"directory.id {shorten(found['directory.id'])!r} is not 16 bytes in Base64",
            source=source,
            kafka_class=_RUNTIME,
        )
    if version and "cluster.id" not in found:
        raise CheckpointError("cluster.id is missing", source=source, kafka_class=_RUNTIME)
    return MetaProperties(
        version=version,
        cluster_id=found.get("cluster.id"),
        node_id=None if node_id is None else BrokerId(node_id),
        directory_id=None if directory_id is None else encode_uuid(directory_id),
    )


def read_meta_properties(storage: Storage, path: str) -> MetaProperties | None:
    """Return the content of the file, None if it is missing. Raises CheckpointError, StorageError."""
    if not storage.exists(path):
        return None
    return parse_meta_properties(storage.read(path, size_bytes_max=METADATA_BYTES_MAX), source=path)


def write_meta_properties(storage: Storage, path: str, properties: MetaProperties) -> None:
    """Replace `meta.properties` atomically."""
    storage.replace(path, encode_meta_properties(properties))


def encode_clean_shutdown(broker_epoch: BrokerEpoch) -> bytes:
    """Return the content of the clean-shutdown marker."""
    return f'{{"version":0,"brokerEpoch":{broker_epoch}}}'.encode("ascii")


def parse_clean_shutdown(data: Buffer) -> BrokerEpoch | None:
    """Return the broker epoch in a marker; None if the marker has none, which is a clean shutdown too."""
    text = bytes(data).decode("utf-8", "replace")
    try:
        content, _ = json.JSONDecoder().raw_decode(text.lstrip())  # What follows the object is not looked at.
    except (ValueError, RecursionError):
        return None
    epoch = content.get("brokerEpoch") if isinstance(content, dict) else None
    if isinstance(epoch, bool) or not isinstance(epoch, int) or not -(2**63) <= epoch < 2**63:
        return None
    return BrokerEpoch(epoch)


def write_clean_shutdown(storage: Storage, path: str, broker_epoch: BrokerEpoch) -> None:
    """Write the marker and flush it to disk."""
    file = storage.open(path, create=True)
    try:
        file.truncate(0)
        file.append(encode_clean_shutdown(broker_epoch))
        file.sync()
    finally:
        file.close()


def read_clean_shutdown(storage: Storage, path: str) -> BrokerEpoch | None:
    """Return the broker epoch in the marker; None without a marker or an epoch in it. Raises StorageError."""
    if not storage.exists(path):
        return None
    return parse_clean_shutdown(storage.read(path, size_bytes_max=METADATA_BYTES_MAX))


def _after_label(lines: tuple[str, ...], number: int, source: str) -> str:
    if number >= len(lines):
        raise CheckpointError(f"line {number + 1} is missing", source=source, kafka_class=_NULL_POINTER)
    fields = split_fields(lines[number], _AFTER_LABEL)
    if len(fields) != 2:
        raise malformed(lines[number], source)
    return fields[1]
