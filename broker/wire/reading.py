"""Read Kafka's messages of any version, flexible or not.

Goals, most important first:
1. What Kafka reads means the same here, and what Kafka's generated code refuses is refused.
2. Nothing is taken before it is known to be there: a length beyond the bytes that are left is damage.
3. A record takes some microseconds, since a log has millions: each version of a message is planned once.

An error names what is wrong here and the byte, and has the message of Kafka's exception, which its tools print: None
where that has none. A strict reader also refuses what Kafka lets pass: tags that do not ascend, and a tagged value that
its size does not fit. One that is not strict refuses nested structures of an unknown version, as Kafka's tools do.

    >>> from broker.wire.fields import Field, Kind, Message
    >>> topic = Message("Topic", 1, 1, (Field("name", Kind.STRING), Field("count", Kind.INT32, since=1)))
    >>> read_message(topic, bytes([0, 1, 97]), version=0), read_message(topic, bytes([2, 97, 0, 0, 0, 5, 0]), version=1)
    ({'name': 'a'}, {'name': 'a', 'count': 5})

Source: org.apache.kafka.common.protocol.ByteBufferAccessor and the code that Kafka's generator makes, 4.3.1; KIP-482.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from broker.errors import CorruptDataError
from broker.java.utf8 import decode_java_utf8
from broker.wire.fields import NUMBERS, STRING_BYTES_MAX, UUID_SIZE_BYTES, Field, Kind, Message, encode_uuid

ELEMENTS_MAX: Final = 250_000
"""Elements of arrays in one message: 100,000 partitions of one topic, as brokers have at most, and their replicas."""
VARINT_BYTES_MAX: Final = 5  # 32 bits at seven bits a byte.
_INT32_SIGN: Final = 1 << 31

_Read: TypeAlias = "Callable[[Reader], Any]"
_Plan: TypeAlias = tuple[tuple[tuple[str, _Read], ...], "dict[int, tuple[str, _Read] | int] | None", dict[str, Any]]
"""How to read a structure: untagged fields, tagged ones (the version for those it lacks), and defaults of all."""


class MessageError(CorruptDataError):
    """A message cannot be read; `kafka_message` is the message of Kafka's exception, None if that has none."""

    def __init__(self, what: str, kafka_message: str | None, *, source: str = "", position: int | None = None) -> None:
        self.kafka_message = kafka_message
        super().__init__(what, source=source, position=position)


class Reader:
    """Read values from the front of `data`, which `source` names in errors; raise MessageError with the position."""

    __slots__ = ("_data", "_elements_left", "_end", "_position", "is_strict", "source")

    def __init__(self, data: bytes, *, source: str = "", is_strict: bool = True) -> None:
        self._data = data
        self._position = 0
        self._end = len(data)
        self._elements_left = ELEMENTS_MAX
        self.source = source
        self.is_strict = is_strict

    @property
    def left(self) -> int:
        """Return the number of unread bytes."""
        return self._end - self._position

    @property
    def position(self) -> int:
        """Return the count of the bytes read."""
        return self._position

    def take(self, size_bytes: int, *, kafka_message: str | None = None) -> bytes:
        """Read the next bytes."""
        start, end = self._position, self._position + size_bytes
        if not start <= end <= self._end:
            what = f"a field of {size_bytes} bytes does not fit into the {self.left} that are left"
            raise self.corrupt(what, kafka_message)
        self._position = end
        return self._data[start:end]

    def number(self, kind: Kind) -> Any:
        """Read a number that is not part of a message, such as the version before it."""
        return NUMBERS[kind].unpack(self.take(NUMBERS[kind].size))[0]

    def unsigned_varint(self) -> int:
        """Read an unsigned varint of at most 32 bits."""
        data, position = self._data, self._position
        if position < self._end and (byte := data[position]) < 0x80:
            self._position += 1
            return byte
        number = 0
        for index in range(VARINT_BYTES_MAX):
            byte = self.take(1)[0]
            number |= (byte & 0x7F) << 7 * index
            if byte < 0x80:
                return number & 0xFFFF_FFFF
        raise self.corrupt(
            f"a number takes more than {VARINT_BYTES_MAX} bytes",
            "Varint is too long, the most significant bit in the 5th byte is set, "
            f"converted value: {number & 0xFFFF_FFFF:x}",
        )

    def java_varint(self) -> int:
        """Read an unsigned varint into an int of 32 bits, as Java does, where the greatest numbers are negative."""
        number = self.unsigned_varint()
        return number - (1 << 32) if number & _INT32_SIGN else number

    def count_elements(self, count: int) -> None:
        """Count elements of arrays, and refuse to read more of them than any message of a broker has."""
        self._elements_left -= count
        if self._elements_left < 0:
            raise self.corrupt(f"its arrays have more than {ELEMENTS_MAX:,} elements")

    def skip_tagged(self, size_bytes: int) -> None:
        """Skip the value of an unknown tag."""
        self.take(size_bytes, kafka_message=_short_array(size_bytes, self.left))

    def corrupt(self, what: str, kafka_message: str | None = None) -> MessageError:
        """Return a MessageError at the current position."""
        return MessageError(what, kafka_message, source=self.source, position=self._position)


def read_message(message: Message, data: bytes | Reader, *, version: int) -> dict[str, Any]:
    """Return the fields of a message that `version` has, by name; raise MessageError. Bytes may be left in a Reader."""
    reader = data if isinstance(data, Reader) else Reader(data)
    plan = message.plans.get(version)
    if plan is None:
        plan = message.plans[version] = _planned(message, message.fields, version)
    return _structure(reader, plan)


def _structure(reader: Reader, plan: _Plan) -> dict[str, Any]:
    untagged, tagged, defaults = plan
    values = dict(defaults)
    for name, read in untagged:
        values[name] = read(reader)
    if tagged is not None:
        _read_tagged(reader, tagged, values)
    return values


def _read_tagged(reader: Reader, tagged: dict[int, tuple[str, _Read] | int], values: dict[str, Any]) -> None:
    count, previous = reader.java_varint(), -1
    if reader.is_strict:
        _ensure_fits(reader, count - 1, None)
    if count > (left := reader.left):  # Since 4.4.0.
        raise _as_in_kafka(reader, f"Tried to read {count} tagged fields, but there are only {left} bytes remaining.")
    for _ in range(count):
        tag, size_bytes = reader.unsigned_varint(), reader.java_varint()
        if reader.is_strict and tag <= previous:
            raise reader.corrupt(f"tag {tag} follows tag {previous}; tags ascend")
        previous = tag
        if tag not in tagged:
            reader.skip_tagged(size_bytes)
            continue
        known = tagged[tag]
        if isinstance(known, int):
            raise _as_in_kafka(reader, f"Tag {tag} is not valid for version {known}")
        name, read = known
        left = reader.left
        values[name] = read(reader)
        if reader.is_strict and left - reader.left != size_bytes:
            raise reader.corrupt(f"{name} takes {left - reader.left} bytes, and its tag says {size_bytes}")


def _planned(message: Message, fields: tuple[Field, ...], version: int) -> _Plan:
    """Return how to read a structure of a version."""
    plans = [(field, _reading(message, field, version)) for field in fields if field.is_in(version)]
    untagged = tuple((field.name, read) for field, read in plans if field.tag is None)
    defaults = {field.name: _absent(field) for field, _ in plans}
    if not message.is_flexible(version):
        return untagged, None, defaults
    tagged: dict[int, tuple[str, _Read] | int] = {field.tag: version for field in fields if field.tag is not None}
    tagged |= {field.tag: (field.name, read) for field, read in plans if field.tag is not None}
    return untagged, tagged, defaults


def _absent(field: Field) -> Any:
    """Return the value of a field that is not there; of a tagged structure that is an empty one, not null."""
    if field.tag is not None and field.kind is Kind.STRUCT and not field.is_array:
        return {each.name: each.default for each in field.fields}
    return field.default


def _reading(message: Message, field: Field, version: int) -> _Read:
    """Return what reads the value of a field."""
    is_flexible = message.is_flexible(version) and not field.always_fixed
    allows_null = field.allows_null(version)
    one = _reading_one(message, field, version, is_flexible)
    if not field.is_array:
        return one

    def array(reader: Reader) -> tuple[Any, ...] | None:
        count = reader.java_varint() - 1 if is_flexible else reader.number(Kind.INT32)
        if count < 0:
            _ensure_null_allowed(reader, field.name, allows_null)
            return None
        left = reader.left
        short = f"Tried to allocate a collection of size {count}, but there are only {left} bytes remaining."
        _ensure_fits(reader, count, short)  # Whatever it counts takes a byte at least.
        reader.count_elements(count)
        return tuple([one(reader) for _ in range(count)])

    return array


def _reading_one(message: Message, field: Field, version: int, is_flexible: bool) -> _Read:
    """Return the reader of a single value or array element."""
    if field.kind in NUMBERS:
        number = NUMBERS[field.kind]
        size_bytes, unpack = number.size, number.unpack
        return lambda reader: unpack(reader.take(size_bytes))[0]
    if field.kind is Kind.BOOL:
        return lambda reader: reader.take(1) != b"\0"
    if field.kind is Kind.UUID:
        return lambda reader: encode_uuid(reader.take(UUID_SIZE_BYTES))
    if field.kind is Kind.STRUCT:
        return _reading_structure(message, field, version)
    shown = f"{field.name} element" if field.is_array else field.name
    allows_null = field.allows_null(version) and not field.is_array
    is_string = field.kind is Kind.STRING
    fixed = Kind.INT16 if is_string else Kind.INT32

    def sized(reader: Reader) -> Any:
        size_bytes = reader.java_varint() - 1 if is_flexible else reader.number(fixed)
        if size_bytes < 0:
            _ensure_null_allowed(reader, shown, allows_null)
            return None
        too_long = f"string field {shown} had invalid length {size_bytes}"
        is_too_long = is_string and size_bytes > STRING_BYTES_MAX
        _ensure_fits(reader, size_bytes, too_long if is_too_long else _short_array(size_bytes, reader.left))
        if is_too_long:
            raise reader.corrupt(too_long, too_long)
        data = reader.take(size_bytes)
        return decode_java_utf8(data) if is_string else data

    return sized


def _reading_structure(message: Message, field: Field, version: int) -> _Read:
    plan = _planned(message, field.fields, version)
    may_be_null = field.allows_null(version) and not field.is_array
    is_tagged, is_unknown = field.tag is not None, version > message.version_max

    def structure(reader: Reader) -> dict[str, Any] | None:
        if may_be_null and (reader.java_varint() <= 0 if is_tagged else reader.take(1)[0] >= 0x80):
            return None
        if is_unknown and not reader.is_strict:  # Kafka's nested classes refuse what its outer ones read.
            raise reader.corrupt(f"version {version} is not known", f"Can't read version {version}")
        return _structure(reader, plan)

    return structure


def _as_in_kafka(reader: Reader, message: str) -> MessageError:
    """Return a MessageError at the current position with Kafka's message, which begins with a capital letter."""
    return reader.corrupt(message[0].lower() + message[1:], message)


def _ensure_fits(reader: Reader, length: int, kafka_message: str | None) -> None:
    """Raise MessageError for a length in bytes or elements that the bytes left cannot hold."""
    if length > reader.left:
        what = f"a length of {length} does not fit into the {reader.left} bytes that are left"
        raise reader.corrupt(what, kafka_message)


def _short_array(size_bytes: int, left: int) -> str:
    if size_bytes < 0:
        return str(size_bytes)  # Java's NegativeArraySizeException.
    return f"Error reading byte array of {size_bytes} byte(s): only {left} byte(s) available"


def _ensure_null_allowed(reader: Reader, shown: str, is_allowed: bool) -> None:
    if not is_allowed:
        text = f"non-nullable field {shown} was serialized as null"
        raise reader.corrupt(text, text)
