"""Read and write Kafka's binary fields as the group coordinator's records use them, with bounds checked.

Constraints: every length is checked against what is left before anything is taken; a string is valid UTF-8. Numbers are
big-endian. From a flexible version on (KIP-482) lengths are unsigned varints, one more than the size, 0 for null, and
every structure ends with tagged fields, which are skipped.

Example: ByteReader(bytes([0, 2, 104, 105])).string() == "hi".

Source: org.apache.kafka.common.protocol.types.Type and ByteBufferAccessor, 4.0.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from broker.errors import CorruptDataError

_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_INT64: Final = Struct(">q")
_VARINT_BYTE_COUNT_MAX: Final = 5


class ByteReader:
    """Read fields from the front of `data`; `what` names the data in errors."""

    def __init__(self, data: bytes | memoryview, *, what: str = "record", is_flexible: bool = False) -> None:
        self._data = memoryview(data)
        self._position = 0
        self._what = what
        self.is_flexible = is_flexible

    @property
    def left(self) -> int:
        """Return the number of unread bytes."""
        return len(self._data) - self._position

    def take(self, size_bytes: int) -> bytes:
        """Return the next `count` bytes; raise CorruptDataError when fewer are left."""
        if not 0 <= size_bytes <= self.left:
            raise self.corrupt(f"a field of {size_bytes} bytes does not fit into the {self.left} that are left")
        start, self._position = self._position, self._position + size_bytes
        return bytes(self._data[start : self._position])

    def int16(self) -> int:
        """Read a signed 16-bit number."""
        number: int = _INT16.unpack(self.take(2))[0]
        return number

    def int32(self) -> int:
        """Read a signed 32-bit number."""
        number: int = _INT32.unpack(self.take(4))[0]
        return number

    def int64(self) -> int:
        """Read a signed 64-bit number."""
        number: int = _INT64.unpack(self.take(8))[0]
        return number

    def string(self) -> str:
        """Read a string; raise CorruptDataError for null."""
        text = self.nullable_string()
        if text is None:
            raise self.corrupt("a string is null that must not be")
        return text

    def nullable_string(self) -> str | None:
        """Read a string, or None for null."""
        size_bytes = self._unsigned_varint() - 1 if self.is_flexible else self.int16()
        if size_bytes < 0:
            return None
        try:
            return self.take(size_bytes).decode("utf-8")
        except UnicodeDecodeError:
            raise self.corrupt("a string is not UTF-8") from None

    def binary(self) -> bytes:
        """Read bytes; null counts as empty."""
        size_bytes = self._unsigned_varint() - 1 if self.is_flexible else self.int32()
        return self.take(max(size_bytes, 0))

    def array_length(self, element_size_bytes_min: int) -> int:
        """Read an array's length; raise CorruptDataError if the remaining bytes cannot hold so many elements."""
        count = self._unsigned_varint() - 1 if self.is_flexible else self.int32()
        if count < 0 or count * element_size_bytes_min > self.left:
            raise self.corrupt(f"an array of {count} elements does not fit into the {self.left} bytes that are left")
        return count

    def end_structure(self) -> None:
        """Skip the tagged fields at the end of a structure of a flexible version."""
        if not self.is_flexible:
            return
        self.tags()

    def tags(self) -> dict[int, bytes]:
        """Read the tagged fields at the end of a structure of a flexible version, each by its tag."""
        found: dict[int, bytes] = {}
        for _ in range(self._unsigned_varint()):
            tag = self._unsigned_varint()
            found[tag] = self.take(self._unsigned_varint())
        return found

    def corrupt(self, what: str) -> CorruptDataError:
        """Return a CorruptDataError at the present position with the message `what`."""
        return CorruptDataError(what, source=self._what, position=self._position)

    def _unsigned_varint(self) -> int:
        number = 0
        for index in range(_VARINT_BYTE_COUNT_MAX):
            byte = self.take(1)[0]
            number |= (byte & 0x7F) << 7 * index
            if byte < 0x80:
                return number
        raise self.corrupt(f"a length takes more than {_VARINT_BYTE_COUNT_MAX} bytes")


class ByteWriter:
    """Collect the fields of a structure of a non-flexible version."""

    def __init__(self) -> None:
        self._data = bytearray()

    def int16(self, number: int) -> ByteWriter:
        """Append a signed 16-bit number."""
        self._data += _INT16.pack(number)
        return self

    def int32(self, number: int) -> ByteWriter:
        """Append a signed 32-bit number."""
        self._data += _INT32.pack(number)
        return self

    def int64(self, number: int) -> ByteWriter:
        """Append a signed 64-bit number."""
        self._data += _INT64.pack(number)
        return self

    def string(self, text: str | None) -> ByteWriter:
        """Append a string, or null."""
        if text is None:
            return self.int16(-1)
        encoded = text.encode("utf-8")
        self.int16(len(encoded))
        self._data += encoded
        return self

    def binary(self, data: bytes) -> ByteWriter:
        """Append bytes."""
        self.int32(len(data))
        self._data += data
        return self

    def done(self) -> bytes:
        """Return all bytes appended."""
        return bytes(self._data)
