"""Write Kafka's messages of any version, flexible or not.

What it decides: the bytes of a message. As in Kafka, a tagged field that is its default is not written, tags ascend,
and a field that a version lacks must be its default.

Source: the code that Kafka's generator makes, 4.3.1; KIP-482.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final

from broker.errors import UsageError, shorten
from broker.wire.fields import NUMBERS, STRING_BYTES_MAX, Field, Fields, Kind, Message, decode_uuid

_NULL_STRUCT: Final = b"\xff"  # A byte of -1; 1 stands before a structure that is there.


def write_message(message: Message, values: Fields, *, version: int) -> bytes:
    """Return a message as bytes; absent `values` are defaults. Raises UsageError for a value that does not fit."""
    return _structure(message, message.fields, version, values)


def write_versioned(message: Message, values: Fields, *, version: int, shown_version: int | None = None) -> bytes:
    """Return a message behind its version of 16 bits, as records hold it; a key shows its record's type instead."""
    shown = version if shown_version is None else shown_version
    return NUMBERS[Kind.INT16].pack(shown) + write_message(message, values, version=version)


def unsigned_varint(number: int) -> bytes:
    """Return an unsigned number of at most 32 bits as a varint."""
    assert 0 <= number < 1 << 32, number
    if number < 0x80:
        return bytes((number,))
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _structure(message: Message, fields: tuple[Field, ...], version: int, values: Fields) -> bytes:
    if not isinstance(values, Mapping):
        raise UsageError(f"fields are {shorten(repr(values))}; a mapping by name is needed")
    unknown = sorted(map(str, set(values) - {field.name for field in fields}))
    if unknown:
        raise UsageError(f"there is no field {unknown[0]}; there are {', '.join(field.name for field in fields)}")
    out, tagged = bytearray(), {}
    for field in fields:
        value = values.get(field.name, field.default)
        if not field.is_in(version):
            if value != field.default:
                raise UsageError(f"version {version} has no field {field.name}")
        elif field.tag is None:
            out += _value(message, field, version, value)
        elif value != field.default:
            tagged[field.tag] = _value(message, field, version, value)
    if message.is_flexible(version):
        out += unsigned_varint(len(tagged))
        for tag in sorted(tagged):
            out += unsigned_varint(tag) + unsigned_varint(len(tagged[tag])) + tagged[tag]
    elif tagged:
        raise UsageError(f"version {version} has no tagged fields")
    return bytes(out)


def _value(message: Message, field: Field, version: int, value: Any) -> bytes:
    is_flexible = message.is_flexible(version) and not field.always_fixed
    if value is None:
        if not field.allows_null(version):
            raise UsageError(f"{field.name} is None, which it may not be")
        if field.kind is Kind.STRUCT and not field.is_array:
            return _NULL_STRUCT if field.tag is None else b"\0"
        return _length(-1, is_flexible, is_short=field.kind is Kind.STRING and not field.is_array)
    if not field.is_array:
        if field.kind is Kind.STRUCT and field.allows_null(version):
            return b"\1" + _one(message, field, version, value, is_flexible)
        return _one(message, field, version, value, is_flexible)
    if not isinstance(value, list | tuple):
        raise UsageError(f"{field.name} is {shorten(repr(value))}; it must be an array of {field.kind.value}")
    each = b"".join(_one(message, field, version, one, is_flexible) for one in value)
    return _length(len(value), is_flexible) + each


def _one(message: Message, field: Field, version: int, value: Any, is_flexible: bool) -> bytes:
    """Encode a single value or array element, which may not be null."""
    if field.kind is Kind.STRUCT:
        return _structure(message, field.fields, version, value)
    try:
        if field.kind in NUMBERS:
            return NUMBERS[field.kind].pack(value)
        if field.kind is Kind.BOOL:
            return b"\1" if value else b"\0"
        if field.kind is Kind.UUID:
            found = decode_uuid(value)
            if found is None:
                raise ValueError
            return found
        if field.kind is not Kind.STRING and not isinstance(value, bytes | bytearray | memoryview):
            raise TypeError  # A number would be taken for a size.
        data = value.encode("utf-8", "replace") if field.kind is Kind.STRING else bytes(value)
    except (struct.error, TypeError, ValueError, AttributeError, OverflowError):
        raise UsageError(f"{field.name} is {shorten(repr(value))}; it must be {field.kind.value}") from None
    if field.kind is Kind.STRING and len(data) > STRING_BYTES_MAX:
        raise UsageError(f"{field.name} has {len(data)} bytes; a string has at most {STRING_BYTES_MAX}")
    return _length(len(data), is_flexible, is_short=field.kind is Kind.STRING) + data


def _length(size: int, is_flexible: bool, *, is_short: bool = False) -> bytes:
    """Return the length of a string, which is short, of bytes or of an array; -1 for null."""
    if is_flexible:
        return unsigned_varint(size + 1)
    return struct.pack(">h" if is_short else ">i", size)
