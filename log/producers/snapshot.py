"""Write and read the `.snapshot` file of the producers of a log up to an offset.

What it decides: how the state of producers is written and read back.

Goals, most important first:
1. The bytes are Kafka's, the order of the producers included.
2. Damage is noticed, whatever it is, and costs no memory beyond the file.

Constraints: big-endian: version (16 bits, 1), CRC-32C of all that follows it, count (32 bits), then 46 bytes a
producer: id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch, first offset of the open
transaction or -1. Only the last batch is kept: after a restart an older duplicate is out of order instead.

Example: a snapshot without producers is a version, the CRC of a count, and that count: 0.

    >>> bytes(encode_snapshot([])).hex(" ", -2)
    '0001 4867 4bc7 0000 0000'
    >>> parse_snapshot(encode_snapshot([]))
    ()

Left out: nothing.

Source: Kafka storage/ProducerStateManager.{readSnapshot, writeSnapshot}, ProducerSnapshot.json, 4.0.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from broker.ids import Offset, ProducerEpoch, ProducerId
from broker.units import MIB, TimeMs
from log.codecs.crc import crc32c
from log.errors import CorruptSnapshotError
from log.producers.entry import BatchMetadata, ProducerEntry
from log.storage.protocol import Buffer

SNAPSHOT_VERSION: Final = 1
SNAPSHOT_BYTES_MAX: Final = 256 * MIB  # 5.8 million producers; a partition has at most thousands.

_HEADER: Final = struct.Struct(">hI")
_COUNT: Final = struct.Struct(">i")
_ENTRY: Final = struct.Struct(">qhiqiqiq")
assert _HEADER.size == 6
PRODUCER_SIZE_BYTES: Final = _ENTRY.size
assert PRODUCER_SIZE_BYTES == 46

_NONE: Final = -1


def encode_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    """Return the content of a snapshot with the producers in the given order."""
    packed = [
        _ENTRY.pack(
            entry.producer_id,
            entry.producer_epoch,
            entry.last_sequence,
            entry.last_data_offset,
            entry.last_offset_delta,
            entry.last_timestamp,
            entry.coordinator_epoch,
            _NONE if entry.current_txn_first_offset is None else entry.current_txn_first_offset,
        )
        for entry in entries
    ]
    body = _COUNT.pack(len(packed)) + b"".join(packed)
    return _HEADER.pack(SNAPSHOT_VERSION, crc32c(body)) + body


def parse_snapshot(data: Buffer, *, source: str = "") -> tuple[ProducerEntry, ...]:
    """Return the producers in a snapshot, in file order; raise CorruptSnapshotError."""
    start = _HEADER.size + _COUNT.size
    if len(data) < start:
        raise CorruptSnapshotError(f"has {len(data)} bytes, fewer than the {start} of its header", source=source)
    version, crc = _HEADER.unpack_from(data)
    if version != SNAPSHOT_VERSION:
        raise CorruptSnapshotError(f"version {version}; {SNAPSHOT_VERSION} is known", source=source, position=0)
    (count,) = _COUNT.unpack_from(data, _HEADER.size)
    end = start + count * _ENTRY.size
    if count < 0 or end > len(data):
        raise CorruptSnapshotError(
            f"{count} producers announced in {len(data)} bytes", source=source, position=_HEADER.size
        )
    view = memoryview(data)
    computed_crc = crc32c(view[_HEADER.size :])
    if crc != computed_crc:
        raise CorruptSnapshotError(
            f"Snapshot is corrupt (CRC is no longer valid). Stored crc: {crc}. Computed crc: {computed_crc}",
            source=source,
            position=2,
        )
    return tuple(_entry_of(*fields) for fields in _ENTRY.iter_unpack(view[start:end]))


def _entry_of(
    producer_id: int, epoch: int, sequence: int, offset: int, delta: int, timestamp: int, coordinator: int, txn: int
) -> ProducerEntry:
    """Return the entry that one row of a snapshot describes."""
    entry = ProducerEntry(
        ProducerId(producer_id),
        producer_epoch=ProducerEpoch(epoch),
        coordinator_epoch=coordinator,
        last_timestamp=TimeMs(timestamp),
        current_txn_first_offset=Offset(txn) if txn >= 0 else None,
    )
    if offset >= 0:
        entry.batches.append(BatchMetadata(sequence, Offset(offset), delta, TimeMs(timestamp)))
    return entry
