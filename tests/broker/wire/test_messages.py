"""Kafka's message format: values of every kind read back, and what Kafka's classes refuse is refused in their words."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.errors import UsageError
from broker.group.schemas import SUBSCRIPTION
from broker.wire import (
    Field,
    Kind,
    Message,
    MessageError,
    Reader,
    array_of,
    read_message,
    write_message,
    write_versioned,
)
from broker.wire.fields import NUMBERS, decode_uuid, encode_uuid
from broker.wire.reading import VARINT_BYTES_MAX

NULLABLE = Message(
    "Nullable",
    3,
    2,
    (
        Field("clientId", Kind.STRING, is_nullable=True, always_fixed=True),
        Field("records", Kind.RECORDS, is_nullable=True, nullable_since=1, default=b""),
        Field("cursor", Kind.STRUCT, is_nullable=True, since=1, fields=(Field("offset", Kind.INT64),)),
        array_of("topics", Field("name", Kind.STRING), Field("ids", Kind.UUID, is_array=True, since=3)),
        Field("tagged", Kind.STRUCT, is_nullable=True, since=2, tag=1, fields=(Field("epoch", Kind.INT32),)),
        Field("past", Kind.INT8, until=0),
    ),
)
_RANGES = {Kind.UINT16: (0, 2**16 - 1), Kind.UINT32: (0, 2**32 - 1)}


def values_of(field: Field, version: int) -> st.SearchStrategy[Any]:
    """Values of a field in a version."""
    one: st.SearchStrategy[Any]
    if field.kind is Kind.STRUCT:
        one = structures(field.fields, version)
    elif field.kind is Kind.FLOAT64:
        one = st.floats(allow_nan=False)
    elif field.kind in NUMBERS:
        bits = 8 * NUMBERS[field.kind].size - 1
        one = st.integers(*_RANGES.get(field.kind, (-(2**bits), 2**bits - 1)))
    else:
        others = {Kind.BOOL: st.booleans(), Kind.UUID: st.binary(min_size=16, max_size=16).map(encode_uuid)}
        texts = {Kind.STRING: st.text(st.characters(codec="utf-8"), max_size=200)}
        one = (others | texts | {Kind.BYTES: st.binary(max_size=200), Kind.RECORDS: st.binary(max_size=9)})[field.kind]
    if field.is_array:
        one = st.lists(one, max_size=3).map(tuple)
    return st.none() | one if field.allows_null(version) else one


def structures(fields: tuple[Field, ...], version: int) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({field.name: values_of(field, version) for field in fields if field.is_in(version)})


KINDS = [kind for kind in Kind if kind is not Kind.STRUCT]
EVERY = Message(
    "Every",
    1,
    1,
    tuple(
        Field(f"{kind.value}{shape}{since}", kind, since=since, is_array=bool(shape), tag=tag)
        for tag, (kind, shape, since) in enumerate((kind, shape, 1) for kind in KINDS for shape in ("", "s"))
    )
    + tuple(Field(kind.value, kind, default=None, is_nullable=kind is Kind.BYTES) for kind in KINDS)
    + tuple(Field(f"{kind.value}s", kind, is_array=True, is_nullable=kind is Kind.STRING) for kind in KINDS),
)


@pytest.mark.parametrize("message", [NULLABLE, EVERY], ids=lambda message: message.name)
@settings(max_examples=12)
@given(data=st.data())
def test_what_is_written_reads_back_in_every_version(message: Message, data: st.DataObject) -> None:
    version = data.draw(st.integers(0, message.version_max))
    values = data.draw(structures(message.fields, version))
    written = write_message(message, values, version=version)
    expected = values
    if message is NULLABLE and version >= 2 and values["tagged"] is None:
        expected = values | {"tagged": {"epoch": 0}}  # A tagged structure that is not there is an empty one.
    assert read_message(message, written, version=version) == expected
    for end in range(len(written)):
        with pytest.raises(MessageError):
            read_message(message, written[:end], version=version)


def test_the_bytes_are_kafkas() -> None:
    """By hand, from the rules of Kafka's message generator and KIP-482."""
    values = {"clientId": "a", "records": b"rr", "cursor": {"offset": 1}, "topics": [{"name": "t"}]}
    fixed = "00 01 61  00 00 00 02 72 72  01 00 00 00 00 00 00 00 01  00 00 00 01 00 01 74"
    flexible = "00 01 61  03 72 72  01 00 00 00 00 00 00 00 01 00  02 02 74 00  01 01 06 01 00 00 00 05 00"
    assert write_message(NULLABLE, values, version=1) == bytes.fromhex(fixed)
    values["tagged"] = {"epoch": 5}
    assert write_message(NULLABLE, values, version=2) == bytes.fromhex(flexible)
    nothing = {"clientId": None, "records": None, "cursor": None}
    assert write_message(NULLABLE, nothing, version=1) == bytes.fromhex("ff ff  ff ff ff ff  ff  00 00 00 00")
    assert write_message(NULLABLE, nothing, version=2) == bytes.fromhex("ff ff  00  ff  01  00")
    assert write_versioned(NULLABLE, nothing, version=1)[:2] == b"\0\1"


@pytest.mark.parametrize(
    ("version", "data", "kafka_message"),
    [
        (0, "ff ff ff ff", "non-nullable field topics was serialized as null"),
        (0, "00 00 00 01 ff ff", "non-nullable field topics element was serialized as null"),
        (0, "00 00 00 01 00 05 61", "Error reading byte array of 5 byte(s): only 1 byte(s) available"),
        (0, "00 00 00 05 00", "Tried to allocate a collection of size 5, but there are only 1 bytes remaining."),
        (0, "00 00 00", None),
        (4, "00 00 00 00 ff ff ff ff 00 00 00 01 00 00", "Can't read version 4"),
    ],
)
def test_a_refusal_has_the_words_of_kafkas_classes(version: int, data: str, kafka_message: str | None) -> None:
    """The words are those in the constant pool of ConsumerProtocolSubscription of 4.3.1."""
    with pytest.raises(MessageError) as refusal:
        read_message(SUBSCRIPTION, Reader(bytes.fromhex(data), is_strict=False), version=version)
    assert refusal.value.kafka_message == kafka_message


NAMES = Message("Names", 1, 0, (Field("names", Kind.STRING, is_array=True), Field("id", Kind.STRING, tag=3, since=1)))


@pytest.mark.parametrize(
    ("version", "data", "what"),
    [
        (0, "02 81 80 02", "at byte 4: a length of 32768 does not fit into the 0 bytes that are left"),
        (0, "80 80 80 80 80 01", "at byte 5: a number takes more than 5 bytes"),
        (0, "01 01 03 01 00", "at byte 4: tag 3 is not valid for version 0"),
        (1, "01 02 05 00 05 00", "at byte 6: tag 5 follows tag 5; tags ascend"),
        (1, "01 01 03 03 02 61", "at byte 6: id takes 2 bytes, and its tag says 3"),
        (1, "01 01 05 03 61", "at byte 4: a field of 3 bytes does not fit into the 1 that are left"),
        (1, "01 09 00", "at byte 2: a length of 8 does not fit into the 1 bytes that are left"),
        (0, "00 00", "at byte 1: non-nullable field names was serialized as null"),
    ],
)
def test_damage_is_refused_with_its_place(version: int, data: str, what: str) -> None:
    with pytest.raises(MessageError) as refusal:
        read_message(NAMES, Reader(bytes.fromhex(data), source="names"), version=version)
    assert str(refusal.value) == f"names {what}"


def test_a_string_that_is_too_long_is_named() -> None:
    for data, named in (("02 81 80 02", "names element"), ("01 01 03 04 81 80 02", "id")):
        padded = bytes.fromhex(data) + bytes(2**15)
        with pytest.raises(MessageError, match=f"string field {named} had invalid length 32768$"):
            read_message(NAMES, padded, version=1)


def test_unknown_tags_are_skipped_and_bytes_may_follow() -> None:
    reader = Reader(bytes.fromhex("01 02 03 02 01 62 05 02 aa bb ff"))
    with pytest.raises(MessageError, match="at byte"):
        read_message(NAMES, reader, version=1)  # A string of length 0, and a byte too many for its size.
    reader = Reader(bytes.fromhex("01 02 03 02 02 62 05 02 aa bb ff"))
    assert read_message(NAMES, reader, version=1) == {"names": (), "id": "b"}
    assert (reader.left, reader.position) == (1, 10)


def test_a_varint_is_an_int_of_32_bits_as_in_java() -> None:
    assert Reader(bytes.fromhex("ff ff ff ff 0f")).java_varint() == -1
    assert Reader(bytes.fromhex("ff ff ff ff 07")).java_varint() == 2**31 - 1
    assert Reader(bytes.fromhex("80 01")).unsigned_varint() == 128
    assert VARINT_BYTES_MAX == 5


@pytest.mark.parametrize(
    ("version", "values", "message"),
    [
        (1, {"nam": ()}, "there is no field nam; there are names, id"),
        (0, {"id": "a"}, "version 0 has no field id"),
        (1, {"names": None}, "names is None, which it may not be"),
        (1, {"names": "ab"}, "names is 'ab'; it must be an array of string"),
        (1, {"names": [5]}, "names is 5; it must be string"),
        (1, {"names": ["é" * 20_000]}, "names has 40000 bytes; a string has at most 32767"),
        (1, 5, "fields are 5; a mapping by name is needed"),
    ],
)
def test_what_cannot_be_written_is_refused(version: int, values: Any, message: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(message)}$"):
        write_message(NAMES, values, version=version)


@pytest.mark.parametrize("text", ["", "A", "A" * 25, "A" * 21, "AAAA AAAA", "A" * 22 + "=", "Ö" * 22])
def test_a_text_that_is_no_id_is_none(text: str) -> None:
    assert decode_uuid(text) is None
    assert decode_uuid(encode_uuid(b"0123456789abcdef") + "==") == b"0123456789abcdef"
