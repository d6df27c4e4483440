"""Print producer snapshots and transaction indexes in the format of kafka-dump-log.

Source: kafka.tools.DumpLogSegments, 3.9.2 and 4.0.1; org.apache.kafka.tools.DumpLogSegments and ProducerStateManager,
4.3.1; ProducerStateManager, Schema and ArrayOf, 3.9.2.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from log.errors import CorruptSnapshotError
from log.partition.producer_snapshot import PRODUCER_SIZE_BYTES, SNAPSHOT_VERSION, parse_snapshot
from log.segments.txn_index import ENTRY_SIZE_BYTES, aborted_transactions
from log.storage.protocol import Buffer
from log.tools.findings import of_error
from log.tools.problems import Problems
from log.tools.sources import SourceFile

VERSION: Final = struct.Struct(">h")
CRC_AND_COUNT: Final = struct.Struct(">Ii")
INVALID: Final = "Snapshot failed schema validation: "


def txn_index_lines(file: SourceFile) -> Iterator[str]:
    """Yield the aborted transactions of a `.txnindex`; raises CorruptTransactionIndexError."""
    data = file.view()
    # Kafka's tool reads all of them before it prints the first; of a version it reads the upper byte, signed.
    for row, aborted in enumerate(tuple(aborted_transactions(data, source=file.shown))):
        (version,) = struct.unpack_from(">b", data, row * ENTRY_SIZE_BYTES)
        yield (
            f"version: {version} producerId: {aborted.producer_id} firstOffset: {aborted.first_offset}"
            f" lastOffset: {aborted.last_offset} lastStableOffset: {aborted.last_stable_offset}"
        )


def snapshot_lines(file: SourceFile, problems: Problems) -> Iterator[str]:
    """Yield the producers of a `.snapshot` file; report an unreadable file to `problems`."""
    data = file.view()
    try:
        entries = parse_snapshot(data, source=file.shown)
    except CorruptSnapshotError as error:
        problems.note(_refusal(data) or error.what)
        problems.damage(of_error(file.shown, error))
        return
    for entry in entries:
        line = (
            f"producerId: {entry.producer_id} producerEpoch: {entry.producer_epoch}"
            f" coordinatorEpoch: {entry.coordinator_epoch}"
            f" currentTxnFirstOffset: {optional_long(entry.current_txn_first_offset)}"
            f" lastTimestamp: {entry.last_timestamp}"
        )
        if entry.batches:
            batch = entry.batches[0]
            line += (
                f" firstSequence: {batch.first_sequence} lastSequence: {batch.last_sequence}"
                f" lastOffset: {batch.last_offset} offsetDelta: {batch.offset_delta} timestamp: {batch.timestamp}"
            )
        yield line


def optional_long(value: int | None) -> str:
    """Return the text that Java prints for an OptionalLong."""
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


def _refusal(data: Buffer) -> str | None:
    """Return what Kafka says of a snapshot whose layout cannot be read; "null" stands where its bytes end."""
    if len(data) < VERSION.size:
        return f"{INVALID}null"
    (version,) = VERSION.unpack_from(data)
    if version != SNAPSHOT_VERSION:
        return f"{INVALID}Snapshot contained an unknown file version {version}"
    if len(data) < VERSION.size + CRC_AND_COUNT.size:
        return f"{INVALID}null"
    _crc, count = CRC_AND_COUNT.unpack_from(data, VERSION.size)
    left = len(data) - VERSION.size - CRC_AND_COUNT.size
    if count < 0:
        return f"{INVALID}non-nullable field producerEntries was serialized as null"
    if count > left:
        return f"{INVALID}Tried to allocate a collection of size {count}, but there are only {left} bytes remaining."
    return None if count * PRODUCER_SIZE_BYTES <= left else f"{INVALID}null"
