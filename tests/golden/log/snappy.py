"""The compressor that wrote the snappy batches of the golden cases, step by step.

Snappy says what compressed bytes mean, not which ones to write, and the library that Kafka carries writes others than
ours. Programs compare sizes of files, so their cases are run with this twin of it: same table, same hash, same steps.
It is slow, and nothing but the golden runner needs it.

Source: snappy 1.1.10 (`CompressFragment` and what it calls), which snappy-java 1.1.10.5 and so Kafka 4.0 carry.
"""

from __future__ import annotations

from typing import Final

from log.codecs.snappy_stream import BLOCK_SIZE_BYTES, HEADER

FRAGMENT_SIZE: Final = 1 << 16
TABLE_SIZE_MIN: Final = 1 << 8
TABLE_SIZE_MAX: Final = 1 << 14
HASH_MULTIPLIER: Final = 0x1E35A7BD
HASH_SHIFT: Final = 18  # What is left are 14 bits, doubled.
MARGIN: Final = 15
"""So many bytes before the end of a fragment no match is looked for."""
EAGER_COUNT: Final = 16
"""So many positions are tried one by one before the search begins to leave some out."""


def compress_stream(data: bytes | memoryview) -> bytes:
    """Return `data` in the framing of `log.codecs.snappy_stream`."""
    out = bytearray(HEADER)
    for start in range(0, len(data), BLOCK_SIZE_BYTES):
        block = compress_block(bytes(data[start : start + BLOCK_SIZE_BYTES]))
        out += len(block).to_bytes(4, "big") + block
    return bytes(out)


def compress_block(data: bytes) -> bytes:
    """Return `data` as one raw snappy block."""
    out = bytearray(_varint(len(data)))
    for start in range(0, len(data), FRAGMENT_SIZE):
        _Fragment(data[start : start + FRAGMENT_SIZE], out).compress()
    return bytes(out)


class _Fragment:
    def __init__(self, data: bytes, out: bytearray) -> None:
        self.data = data
        self.out = out
        size = len(data)
        wanted = TABLE_SIZE_MIN if size <= 1 else 2 << ((size - 1).bit_length() - 1)
        self.mask = 2 * (min(max(wanted, TABLE_SIZE_MIN), TABLE_SIZE_MAX) - 1)
        self.table: dict[int, int] = {}

    def word(self, position: int) -> int:
        return int.from_bytes(self.data[position : position + 4], "little")

    def swap(self, position: int) -> int:
        """Return where the same hash was met last, 0 at first, and note that it is met at `position`."""
        hashed = (HASH_MULTIPLIER * self.word(position) & 0xFFFFFFFF) >> (HASH_SHIFT - 1)
        slot = (hashed & self.mask) >> 1
        candidate = self.table.get(slot, 0)
        self.table[slot] = position
        return candidate

    def compress(self) -> None:
        position, limit = 0, len(self.data) - MARGIN
        while limit >= 0:
            literal_start = position
            found = self.find_match(position + 1, limit)
            if found is None:
                position = literal_start
                break
            position, candidate = found
            self.literal(literal_start, position)
            position, is_done = self.copies(position, candidate, limit)
            if is_done:
                break
        if position < len(self.data):
            self.literal(position, len(self.data))

    def find_match(self, position: int, limit: int) -> tuple[int, int] | None:
        """Return the next position of which four bytes were met before, and where; None at the end."""
        skip = 32
        if limit - position >= EAGER_COUNT:
            for each in range(position, position + EAGER_COUNT):
                candidate = self.swap(each)
                if self.word(candidate) == self.word(each):
                    return each, candidate
            position += EAGER_COUNT
            skip += EAGER_COUNT
        while True:
            step = skip >> 5
            skip += step
            if position + step > limit:
                return None
            candidate = self.swap(position)
            if self.word(candidate) == self.word(position):
                return position, candidate
            position += step

    def copies(self, position: int, candidate: int, limit: int) -> tuple[int, bool]:
        """Write copies as long as one follows the other; return where they end, and whether the search does too."""
        while True:
            size = self.match_size(candidate, position)
            self.copy(position - candidate, size)
            position += size
            if position >= limit:
                return position, True
            self.swap(position - 1)
            candidate = self.swap(position)
            if self.word(candidate) != self.word(position):
                return position, False

    def match_size(self, candidate: int, position: int) -> int:
        size = 4
        while position + size < len(self.data) and self.data[candidate + size] == self.data[position + size]:
            size += 1
        return size

    def literal(self, start: int, end: int) -> None:
        length = end - start - 1
        if length < 60:
            self.out.append(length << 2)
        else:
            size = (length.bit_length() + 7) // 8
            self.out.append((59 + size) << 2)
            self.out += length.to_bytes(size, "little")
        self.out += self.data[start:end]

    def copy(self, offset: int, size: int) -> None:
        while size >= 68:
            self.copy_at_most_64(offset, 64)
            size -= 64
        if size > 64:
            self.copy_at_most_64(offset, 60)
            size -= 60
        self.copy_at_most_64(offset, size)

    def copy_at_most_64(self, offset: int, size: int) -> None:
        if size < 12 and offset < 2048:
            self.out += bytes((1 | (size - 4) << 2 | (offset >> 8) << 5, offset & 0xFF))
        else:
            self.out += (2 | (size - 1) << 2 | offset << 8).to_bytes(3, "little")


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
