"""Print producer snapshots and transaction indexes in the format of kafka-dump-log.

What it decides: the lines for `.snapshot` and `.txnindex`.

Constraints: of a snapshot that cannot be read, Kafka's tool prints why, without its name, and goes on.

How: 3.9 reads a snapshot by a schema, whose errors name the field, and looks at the version last. Since 4.0 the class
is generated from ProducerSnapshot.json; the version is read first, and a file that ends too early has no words.

Example: producerId: 7 producerEpoch: 0 coordinatorEpoch: -1 currentTxnFirstOffset: OptionalLong.empty …

Left out: nothing.

Source: kafka.tools.DumpLogSegments, 3.9.2 and 4.0.1; org.apache.kafka.tools.DumpLogSegments and ProducerStateManager,
4.3.1; ProducerStateManager, Schema and ArrayOf, 3.9.2.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator, Sequence
from typing import Final

from broker.releases import Release
from log.errors import CorruptSnapshotError
from log.indexes.txn_index import ENTRY_SIZE_BYTES, aborted_transactions
from log.producers.snapshot import PRODUCER_SIZE_BYTES, SNAPSHOT_VERSION, parse_snapshot
from log.storage.protocol import Buffer
from log.tools.dump_options import DumpOptions
from log.tools.findings import of_error
from log.tools.problems import IN_JAVA, Problems
from log.tools.sources import SourceFile

VERSION: Final = struct.Struct(">h")
CRC_AND_COUNT: Final = struct.Struct(">Ii")
BY_SCHEMA: Final = Release("3.9")
"""The last release that reads snapshots by a schema of fields."""
HEADER_FIELDS: Final = (("version", 2), ("crc", 4))
"""The fields before the producers, with their sizes in bytes."""
PRODUCER_FIELDS: Final = (
    ("producer_id", 8),
    ("epoch", 2),
    ("last_sequence", 4),
    ("last_offset", 8),
    ("offset_delta", 4),
    ("timestamp", 8),
    ("coordinator_epoch", 4),
    ("current_txn_first_offset", 8),
)
assert sum(size for _, size in PRODUCER_FIELDS) == PRODUCER_SIZE_BYTES
INVALID: Final = "Snapshot failed schema validation: "
UNDERFLOW: Final = "java.nio.BufferUnderflowException"


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


def snapshot_lines(file: SourceFile, options: DumpOptions, problems: Problems) -> Iterator[str]:
    """Yield the producers of a `.snapshot` file; report an unreadable file to `problems`."""
    data = file.view()
    try:
        entries = parse_snapshot(data, source=file.shown)
    except CorruptSnapshotError as error:
        refusal = _refusal_by_schema(data) if options.release <= BY_SCHEMA else _refusal(data)
        problems.note(refusal or error.what)
        problems.damage(of_error(file.shown, error))
        return
    # Up to 4.2 a blank stands after the timestamp even if nothing follows.
    end = "" if options.release >= IN_JAVA else " "
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
        yield line if entry.batches else line + end


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


def _refusal_by_schema(data: Buffer) -> str | None:
    """Return what Kafka 3.9 says of a snapshot whose layout cannot be read; it names the field."""
    cut = _field_cut(HEADER_FIELDS, len(data))
    if cut is not None:
        return f"{INVALID}Error reading field '{cut}': {UNDERFLOW}"
    of_producers = f"{INVALID}Error reading field 'producer_entries': "
    left = len(data) - VERSION.size - CRC_AND_COUNT.size
    if left < 0:
        return of_producers + UNDERFLOW
    _crc, count = CRC_AND_COUNT.unpack_from(data, VERSION.size)
    if count < 0:
        return f"{of_producers}Array size {count} cannot be negative"
    if count > left:
        return f"{of_producers}Error reading array of size {count}, only {left} bytes available"
    if count * PRODUCER_SIZE_BYTES > left:
        cut = _field_cut(PRODUCER_FIELDS, left % PRODUCER_SIZE_BYTES)
        return f"{of_producers}Error reading field '{cut}': {UNDERFLOW}"
    (version,) = VERSION.unpack_from(data)
    return None if version == SNAPSHOT_VERSION else f"Snapshot contained an unknown file version {version}"


def _field_cut(fields: Sequence[tuple[str, int]], size_bytes: int) -> str | None:
    """Return the name of the first field that does not end within `size_bytes`, None if all do."""
    ends = itertools.accumulate(size for _, size in fields)
    return next((name for (name, _), end in zip(fields, ends, strict=True) if end > size_bytes), None)
