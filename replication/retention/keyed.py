"""Records with keys, and how to tell a record by what is in it.

It decides which key a value is written under and which values are tombstones: both follow from the value alone.

Constraints: every write of a run has a value of its own, by which checkers know it again. A tombstone has none, so its
number stands in a header.

Example: keyed_record(17, 8, 6, 0) has one of the keys key-0 to key-7.

Source: ours.
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
    """Return the record of a value, under its key; one in so many is a tombstone."""
    number = int.from_bytes(value, "big")
    key = f"key-{derive(number, _KEY_STREAM) % key_count}".encode()
    if derive(number, _TOMBSTONE_STREAM) % tombstones_one_in == 0:
        return Record(Offset(0), timestamp_ms, key, None, (Header(_NUMBER, value),))
    return Record(Offset(0), timestamp_ms, key, value)


def identity_of(record: Record) -> int:
    """Return the number of the write that a record is of, also of a tombstone."""
    data = record.value
    if data is None:
        data = next((header.value for header in record.headers if header.name == _NUMBER), None)
    return int.from_bytes(data or b"", "big")
