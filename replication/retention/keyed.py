"""Build records with keys and tombstones from a write's number, and read the number back.

Each write of a run has its own value, by which checkers identify it. A tombstone has no value, so its number stands in
a header.

Example:

>>> from replication.retention.keyed import identity_of, keyed_record
>>> record = keyed_record((17).to_bytes(8, "big"), key_count=8, tombstones_one_in=6, timestamp_ms=TimeMs(0))
>>> record.key, identity_of(record)
(b'key-0', 17)
"""

from __future__ import annotations

from typing import Final

from broker.entropy import derive
from broker.ids import Offset
from broker.units import TimeMs
from log.record import Header, Record

_KEY_STREAM: Final = 11
_TOMBSTONE_STREAM: Final = 12
_NUMBER: Final = "number"


def keyed_record(value: bytes, key_count: int, tombstones_one_in: int, timestamp_ms: TimeMs) -> Record:
    """Return the record of a value under one of `key_count` keys; one in `tombstones_one_in` is a tombstone."""
    number = int.from_bytes(value, "big")
    key = f"key-{derive(number, _KEY_STREAM) % key_count}".encode()
    if derive(number, _TOMBSTONE_STREAM) % tombstones_one_in == 0:
        return Record(Offset(0), timestamp_ms, key, None, (Header(_NUMBER, value),))
    return Record(Offset(0), timestamp_ms, key, value)


def identity_of(record: Record) -> int:
    """Return the number of the write that produced a record, a tombstone included."""
    data = record.value
    if data is None:
        data = next((header.value for header in record.headers if header.name == _NUMBER), None)
    return int.from_bytes(data or b"", "big")
