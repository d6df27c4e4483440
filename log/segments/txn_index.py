"""Store the aborted transactions of a segment, and find those that a read-committed fetch must skip.

Source: Kafka storage/org.apache.kafka.storage.internals.log.{TransactionIndex, AbortedTxn}, 4.4.0,
which reads both bytes of a version; 4.0 reads the upper one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import attrs

from broker.ids import Offset, ProducerId
from log.errors import CorruptIndexError, CorruptTransactionIndexError, IllegalArgumentError
from log.storage.protocol import Buffer, Storage, StoredFile

CURRENT_VERSION: Final = 0
_ENTRY: Final = struct.Struct(">hqqqq")
ENTRY_SIZE_BYTES: Final = _ENTRY.size
assert ENTRY_SIZE_BYTES == 34


@attrs.frozen
class AbortedTransaction:
    """Describe an aborted transaction; `last_offset` is its marker's, `last_stable_offset` that after the marker."""

    producer_id: ProducerId
    first_offset: Offset
    last_offset: Offset
    last_stable_offset: Offset


@attrs.frozen
class AbortedTransactions:
    """Hold the found transactions; `is_complete` is true if no later segment can add one."""

    transactions: tuple[AbortedTransaction, ...]
    is_complete: bool


class TransactionIndex:
    """Read and write the `.txnindex` file of one segment, created with the first entry."""

    def __init__(self, storage: Storage, path: str, start_offset: int) -> None:
        self._storage = storage
        self._file: StoredFile | None = storage.open(path) if storage.exists(path) else None
        self._last_offset: int | None = None
        self.path = path
        self.start_offset = start_offset

    def __repr__(self) -> str:
        return f"TransactionIndex({self.path!r})"

    @classmethod
    def open(cls, storage: Storage, path: str, start_offset: int) -> TransactionIndex:
        """Open the index of a segment with base offset `start_offset`, without creating a file."""
        return cls(storage, path, start_offset)

    def append(self, aborted: AbortedTransaction) -> None:
        """Add an entry; raise IllegalArgumentError unless its last offset is above the last entry's."""
        if self._last_offset is not None and self._last_offset >= aborted.last_offset:
            raise IllegalArgumentError(
                f"{self.path}: last offset {aborted.last_offset} is not above the one before, {self._last_offset}"
            )
        if self._file is None:
            self._file = self._storage.open(self.path, create=True)
        self._last_offset = aborted.last_offset
        self._file.append(encode_aborted(aborted))

    def entries(self) -> tuple[AbortedTransaction, ...]:
        """Return all entries in order; raise CorruptTransactionIndexError."""
        return tuple(self._iterate())

    def collect(self, fetch_offset: int, upper_bound_offset: int) -> AbortedTransactions:
        """Return the transactions that end at `fetch_offset` or later and begin before `upper_bound_offset`.

        Raises CorruptTransactionIndexError.
        """
        found = []
        for aborted in self._iterate():
            if aborted.last_offset >= fetch_offset and aborted.first_offset < upper_bound_offset:
                found.append(aborted)
            if aborted.last_stable_offset >= upper_bound_offset:
                return AbortedTransactions(tuple(found), is_complete=True)
        return AbortedTransactions(tuple(found), is_complete=False)

    def truncate_to(self, offset: int) -> None:
        """Drop the entries from the first whose marker is at or above `offset`."""
        last_offset_kept = None
        for count, aborted in enumerate(self._iterate()):
            if aborted.last_offset >= offset:
                assert self._file is not None
                self._file.truncate(count * ENTRY_SIZE_BYTES)
                self._last_offset = last_offset_kept
                return
            last_offset_kept = aborted.last_offset

    def sanity_check(self) -> None:
        """Raise CorruptIndexError if an entry ends below the segment's base offset.

        Raises CorruptTransactionIndexError if an entry's version is not known.
        """
        for aborted in self._iterate():
            if aborted.last_offset < self.start_offset:
                raise CorruptIndexError(
                    f"has a transaction that ends at {aborted.last_offset}, below the start offset {self.start_offset}",
                    source=self.path,
                )

    def reset(self) -> None:
        """Drop all entries."""
        if self._file is not None:
            self._file.truncate(0)
        self._last_offset = None

    def flush(self) -> None:
        """Make the entries durable."""
        if self._file is not None:
            self._file.sync()

    def rename(self, path: str) -> None:
        """Rename the file within its directory, if it exists."""
        if self._storage.exists(self.path):
            self._storage.rename(self.path, path)
        self.path = path

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
        self._file = None

    def remove(self) -> bool:
        """Close and remove the file; return whether it existed."""
        self.close()
        is_there = self._storage.exists(self.path)
        if is_there:
            self._storage.remove(self.path)
        return is_there

    def _iterate(self) -> Iterator[AbortedTransaction]:
        data = b"" if self._file is None else self._file.read_at(0, self._file.size_bytes)
        return aborted_transactions(data, source=self.path)


def encode_aborted(aborted: AbortedTransaction) -> bytes:
    """Return the 34 bytes of an entry."""
    return _ENTRY.pack(
        CURRENT_VERSION,
        aborted.producer_id,
        aborted.first_offset,
        aborted.last_offset,
        aborted.last_stable_offset,
    )


def aborted_transactions(data: Buffer, *, source: str = "") -> Iterator[AbortedTransaction]:
    """Yield the whole entries in the bytes of a `.txnindex` file.

    Raises CorruptTransactionIndexError on coming to one of an unknown version.
    """
    for position in range(0, len(data) - ENTRY_SIZE_BYTES + 1, ENTRY_SIZE_BYTES):
        version, producer_id, first_offset, last_offset, stable_offset = _ENTRY.unpack_from(data, position)
        if version > CURRENT_VERSION:
            raise CorruptTransactionIndexError(
                f"aborted transaction of version {version}; {CURRENT_VERSION} is known",
                source=source,
                position=position,
            )
        yield AbortedTransaction(
            ProducerId(producer_id), Offset(first_offset), Offset(last_offset), Offset(stable_offset)
        )
