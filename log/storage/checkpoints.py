"""Read and write the offset checkpoints of a log directory and the leader epochs of a partition.

Source: Kafka server-common/CheckpointFile, storage/checkpoint/{OffsetCheckpointFile, LeaderEpochCheckpointFile}, 4.0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from broker.errors import shorten
from broker.ids import LeaderEpoch, Offset, PartitionId, TopicPartition
from broker.java.numbers import parse_number
from broker.units import MIB
from broker.values import value
from log.errors import CheckpointError
from log.storage.protocol import Buffer, Storage

_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_WHITE_SPACE: Final = re.compile(r"[ \t\n\x0b\f\r]+")


def lines_of(text: str) -> tuple[str, ...]:
    """Return the lines as Java's `readLine` returns them: ended by CR, LF or both."""
    lines = _LINE_END.split(text)
    return tuple(lines[:-1] if lines[-1] == "" else lines)


def split_fields(line: str, separator: re.Pattern[str] = _WHITE_SPACE) -> tuple[str, ...]:
    """Return `line` split as Java's `String.split` does: drop empty fields at the end, keep those at the start."""
    fields = separator.split(line)
    if len(fields) == 1:
        return (line,)
    while fields and fields[-1] == "":
        fields.pop()
    return tuple(fields)


RECOVERY_POINT_FILE: Final = "recovery-point-offset-checkpoint"
REPLICATION_FILE: Final = "replication-offset-checkpoint"
LOG_START_FILE: Final = "log-start-offset-checkpoint"
CLEANER_FILE: Final = "cleaner-offset-checkpoint"
LEADER_EPOCH_FILE: Final = "leader-epoch-checkpoint"

OFFSET_CHECKPOINT_BYTES_MAX: Final = 64 * MIB  # 230,000 partitions of the longest name; a broker has thousands.
EPOCH_CHECKPOINT_BYTES_MAX: Final = 16 * MIB  # Half a million leader epochs.

_VERSION: Final = 0
_ILLEGAL_ARGUMENT: Final = "java.lang.IllegalArgumentException"
_NUMBER_FORMAT: Final = "java.lang.NumberFormatException"

Entry = TypeVar("Entry")


@value
class EpochEntry:
    """Hold a leader epoch and the offset of its first record."""

    epoch: LeaderEpoch
    start_offset: Offset


def encode_offset_checkpoint(offsets: Mapping[TopicPartition, Offset]) -> bytes:
    """Return the content of an offset checkpoint, sorted by topic and partition."""
    return _encode(f"{which.topic} {which.partition} {offsets[which]}" for which in sorted(offsets))


def parse_offset_checkpoint(data: Buffer, *, source: str = "") -> dict[TopicPartition, Offset]:
    """Return the offsets in the file's order; a partition's last line counts. Raises CheckpointError."""
    return dict(_parse(data, source, _offset_entry))


def read_offset_checkpoint(storage: Storage, path: str) -> dict[TopicPartition, Offset]:
    """Return the offsets in a file, none if it is missing. Raises CheckpointError, StorageError."""
    if not storage.exists(path):
        return {}
    return parse_offset_checkpoint(storage.read(path, size_bytes_max=OFFSET_CHECKPOINT_BYTES_MAX), source=path)


def write_offset_checkpoint(storage: Storage, path: str, offsets: Mapping[TopicPartition, Offset]) -> None:
    """Replace the checkpoint by one with these offsets, atomically."""
    storage.replace(path, encode_offset_checkpoint(offsets))


def encode_epoch_checkpoint(entries: Iterable[EpochEntry]) -> bytes:
    """Return the content of a leader epoch checkpoint, in the order given."""
    return _encode(f"{entry.epoch} {entry.start_offset}" for entry in entries)


def parse_epoch_checkpoint(data: Buffer, *, source: str = "") -> tuple[EpochEntry, ...]:
    """Return the entries in the file's order. Raises CheckpointError."""
    return tuple(_parse(data, source, _epoch_entry))


def read_epoch_checkpoint(storage: Storage, path: str) -> tuple[EpochEntry, ...]:
    """Return the entries in a file, none if it is missing. Raises CheckpointError, StorageError."""
    if not storage.exists(path):
        return ()
    return parse_epoch_checkpoint(storage.read(path, size_bytes_max=EPOCH_CHECKPOINT_BYTES_MAX), source=path)


def write_epoch_checkpoint(storage: Storage, path: str, entries: Iterable[EpochEntry]) -> None:
    """Replace the checkpoint by one with these entries, atomically."""
    storage.replace(path, encode_epoch_checkpoint(entries))


def decode_text(data: Buffer, *, source: str) -> str:
    """Return UTF-8 `data` as text; raise CheckpointError if it is not UTF-8."""
    try:
        return bytes(data).decode("utf-8")
    except UnicodeDecodeError as damage:
        raise CheckpointError(f"byte {damage.start} is not UTF-8", source=source) from None


def malformed(line: str, source: str) -> CheckpointError:
    """Return the error for a line that is not an entry."""
    return CheckpointError(f"malformed line {shorten(line)!r}", source=source)


def _encode(lines: Iterable[str]) -> bytes:
    entries = list(lines)
    return "".join(f"{line}\n" for line in [str(_VERSION), str(len(entries)), *entries]).encode("utf-8")


def _parse(data: Buffer, source: str, entry_of: Callable[[str, str], Entry]) -> list[Entry]:
    lines = lines_of(decode_text(data, source=source))
    if not lines:
        return []
    version = _header_number(lines[0], source)
    if version != _VERSION:
        raise CheckpointError(f"version {version}; {_VERSION} is known", source=source)
    if len(lines) == 1:
        return []
    count = _header_number(lines[1], source)
    if count < 0:
        raise CheckpointError(f"{count} entries announced", source=source, kafka_class=_ILLEGAL_ARGUMENT)
    entries = [entry_of(line, source) for line in lines[2:]]
    if len(entries) != count:
        raise CheckpointError(f"{count} entries announced, {len(entries)} found", source=source)
    return entries


def _header_number(line: str, source: str) -> int:
    number = parse_number(line, bits=32)
    if number is None:
        raise malformed(line, source)
    return number


def _offset_entry(line: str, source: str) -> tuple[TopicPartition, Offset]:
    fields = split_fields(line)
    if len(fields) != 3:
        raise malformed(line, source)
    partition = _entry_number(fields[1], 32, source)
    return TopicPartition(fields[0], PartitionId(partition)), Offset(_entry_number(fields[2], 64, source))


def _epoch_entry(line: str, source: str) -> EpochEntry:
    fields = split_fields(line)
    if len(fields) != 2:
        raise malformed(line, source)
    epoch = _entry_number(fields[0], 32, source)
    return EpochEntry(LeaderEpoch(epoch), Offset(_entry_number(fields[1], 64, source)))


def _entry_number(text: str, bits: int, source: str) -> int:
    number = parse_number(text, bits=bits)
    if number is None:
        raise CheckpointError(
            f"{shorten(text)!r} is not a number of {bits} bits", source=source, kafka_class=_NUMBER_FORMAT
        )
    return number
