"""Bound what the few bytes of a file make a reader do: bytes decompressed, records and headers read.

A batch of 6 KB may hold nine million records. So a reader of a file takes from its compressed batches at most 64 MiB
and 256 bytes for each byte of the file, and at most a million records and two for each byte: a batch whose offsets
ascend does not compress to less than a byte a record. Of records that are decoded, an eighth. What is beyond is
not read, which `verify` tells from damage.

Source: ours; Kafka takes all that fits into its heap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from broker.units import MIB
from log.codecs.compression import DECOMPRESSED_BYTES_MAX
from log.codecs.crc import BytesLike
from log.errors import DecompressionError, ReadingLimitError

BYTES_FREE: Final = DECOMPRESSED_BYTES_MAX
BYTES_PER_BYTE: Final = 256
RECORDS_FREE: Final = MIB
RECORDS_PER_BYTE: Final = 2
HEADERS_PER_RECORD: Final = 2
"""How many headers cost as much as a record."""
HEADERS_MAX: Final = 65_536
"""Headers that a record may have: of the usual 64 bytes, they fill the largest batch of a producer four times."""
DECODED_COST: Final = 8
"""How many records cost as much as one whose key and value are decoded as Kafka's messages."""


class ReadingAllowance:
    """Count what may still be read from the compressed batches of one file of `size_bytes`.

    `record_cost` says how many plain records one record costs, and how many bytes a byte.
    """

    __slots__ = ("_bytes_left", "_cost", "_headers_left", "_size_bytes")

    def __init__(self, size_bytes: int, record_cost: int = 1) -> None:
        self._size_bytes = size_bytes
        self._bytes_left = (BYTES_FREE + BYTES_PER_BYTE * size_bytes) // record_cost
        self._headers_left = HEADERS_PER_RECORD * (RECORDS_FREE + RECORDS_PER_BYTE * size_bytes)
        self._cost = HEADERS_PER_RECORD * record_cost

    @property
    def records_max(self) -> int:
        """Return how many records without headers may still be read."""
        return self._headers_left // self._cost

    def bytes_max(self, bytes_max: int = DECOMPRESSED_BYTES_MAX) -> int:
        """Return how many bytes the next batch may decompress to; raise ReadingLimitError for none."""
        if self._bytes_left <= 0:
            raise self.refusal("its bytes are")
        return min(bytes_max, self._bytes_left)

    def take_bytes(self, size_bytes: int) -> None:
        """Count a batch's decompressed bytes."""
        self._bytes_left -= size_bytes

    def take_from(self, read: Callable[[int], BytesLike]) -> BytesLike:
        """Return what `read` decompresses to at most the given bytes, and count them, those before an error too."""
        try:
            data = read(self.bytes_max())
        except DecompressionError as error:
            self.take_bytes(error.reached_bytes)
            raise
        self.take_bytes(len(data))
        return data

    def take_records(self, record_count: int, header_count: int = 0) -> bool:
        """Count records and their headers; return False, and count nothing, for more than the file may have."""
        left = self._headers_left - self._cost * record_count - header_count
        if left >= 0:
            self._headers_left = left
        return left >= 0

    def refusal(self, what: str) -> ReadingLimitError:
        """Return the error for what is beyond the allowance; `what` is a plural subject and "are"."""
        return ReadingLimitError(f"{what} not read: a file of {self._size_bytes:,} bytes does not hold as much")
