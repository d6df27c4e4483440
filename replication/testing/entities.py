"""Read requests and write responses of Kafka's protocol: frames to values and back.

The wire formats are those of the package `kio`, which generates one class per request, response and version. A
response is built from plain values by Kafka's field names; a field that a version does not have is left out, one that
is not given has the default of the schema.

Example:

>>> body = build(response_class(18, 0), {"error_code": 0, "api_keys": [{"api_key": 3, "max_version": 12}]})
>>> body.api_keys[0].max_version, body.api_keys[0].min_version
(12, 0)

Source: Kafka's protocol guide; clients/src/main/resources/common/message, 4.4.0; KIP-482 for flexible versions.
"""

from __future__ import annotations

import dataclasses
import io
import typing
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import cache
from typing import Any, Final

import attrs

from broker.errors import CorruptDataError, MissingExtraError

try:
    from kio.index import load_request_schema, load_response_schema
    from kio.schema.errors import ErrorCode as WireErrorCode
    from kio.serial import entity_reader, entity_writer
except ImportError:
    raise MissingExtraError("a cluster for real clients", "kio", "clients") from None

FRAME_BYTES_MAX: Final = 100 << 20
"""The largest request: socket.request.max.bytes by default."""
API_VERSIONS: Final = 18
_KEY_AND_VERSION_BYTES: Final = 4


@attrs.frozen(kw_only=True)
class Request:
    """Hold one request: its API, version, correlation id, client id, and the entity of that version."""

    api: int
    version: int
    correlation_id: int
    client_id: str
    body: Any


@cache
def request_class(api: int, version: int) -> Any:
    """Return the class of a request's entity."""
    return load_request_schema(api, version)


@cache
def response_class(api: int, version: int) -> Any:
    """Return the class of a response's entity."""
    return load_response_schema(api, version)


def api_and_version(frame: bytes) -> tuple[int, int]:
    """Return the API key and version with which a frame begins; raise CorruptDataError for a shorter frame."""
    if len(frame) < _KEY_AND_VERSION_BYTES:
        raise CorruptDataError(f"a request of {len(frame)} bytes is shorter than its header")
    return int.from_bytes(frame[:2], "big", signed=True), int.from_bytes(frame[2:4], "big", signed=True)


def read_request(frame: bytes) -> Request:
    """Read a request without its length; raise CorruptDataError for bytes that are none.

    Bytes behind the request are passed over, as brokers do: librdkafka 2 sends three behind a Metadata request.
    """
    api, version = api_and_version(frame)
    try:
        body_class = request_class(api, version)
        header, header_bytes = _reader(body_class.__header_schema__)(frame, 0)
        body, _ = _reader(body_class)(frame, header_bytes)
        _refuse_null_arrays(body)
    except Exception as error:  # The reader raises errors of many classes on bytes of strangers.
        raise CorruptDataError(f"request {api} of version {version} cannot be read: {type(error).__name__}") from None
    return Request(
        api=api,
        version=version,
        correlation_id=header.correlation_id,
        client_id=header.client_id or "",
        body=body,
    )


def _refuse_null_arrays(entity: Any) -> None:
    """Raise TypeError for null in an array field that is not nullable, which kio's reader accepts."""
    kind: Any = type(entity)
    for name, is_nullable, has_entities in _arrays(kind):
        listed = getattr(entity, name)
        if listed is None and not is_nullable:
            raise TypeError(name)
        for each in listed or () if has_entities else ():
            _refuse_null_arrays(each)


@cache
def _arrays(entity: Any) -> tuple[tuple[str, bool, bool], ...]:
    """Return the array fields of an entity's class: name, whether nullable, whether of entities."""
    hints = typing.get_type_hints(entity)
    return tuple(
        (name, type(None) in typing.get_args(hint), any(map(dataclasses.is_dataclass, _leaves(hint))))
        for name, hint in hints.items()
        if _is_tuple(hint)
    )


def write_response(request: Request, values: Mapping[str, object]) -> bytes:
    """Return the frame of a response, with its length; `values` are by the field names of the newest version."""
    body_class = response_class(request.api, request.version)
    header_class = body_class.__header_schema__
    buffer = io.BytesIO()
    buffer.write(bytes(4))
    _writer(header_class)(buffer, header_class(correlation_id=request.correlation_id))
    _writer(body_class)(buffer, build(body_class, values))
    frame = buffer.getbuffer()
    frame[:4] = (len(frame) - 4).to_bytes(4, "big")
    return bytes(frame)


_reader, _writer = cache(entity_reader), cache(entity_writer)


def build(entity: Any, values: Mapping[str, object]) -> Any:
    """Return an entity of a version from values by name; nested entities are mappings, durations are in ms."""
    fields = {}
    for name, convert, default in _plan(entity):
        if name in values:
            fields[name] = convert(values[name])
        elif default is not dataclasses.MISSING:
            fields[name] = default
    return entity(**fields)


_Plan = tuple[tuple[str, Callable[[Any], object], object], ...]


@cache
def _plan(entity: Any) -> _Plan:
    """Return the name of each field, the conversion of its value, and its default where the schema has none."""
    hints = typing.get_type_hints(entity)
    return tuple(
        (field.name, _conversion(hints[field.name], field), _default(hints[field.name], field))
        for field in dataclasses.fields(entity)
    )


def _conversion(hint: Any, field: dataclasses.Field[Any]) -> Callable[[Any], object]:
    kind = str(field.metadata.get("kafka_type", ""))
    if not kind:
        nested = next(each for each in _leaves(hint) if dataclasses.is_dataclass(each))
        if _is_tuple(hint):
            return lambda values: None if values is None else tuple(build(nested, each) for each in values)
        return lambda values: None if values is None else build(nested, values)
    if kind.startswith("timedelta"):
        return lambda ms: timedelta(milliseconds=ms)
    if kind == "error_code":
        return WireErrorCode
    return _listed if _is_tuple(hint) else _as_it_is


_ZEROS: Final[Mapping[str, object]] = {
    "string": "",
    "bool": False,
    "bytes": b"",
    "records": None,
    "uuid": None,
    "error_code": WireErrorCode.none,
}


def _default(hint: Any, field: dataclasses.Field[Any]) -> object:
    """Return what stands for a value that is not given; MISSING where the entity has its own default."""
    if field.default is not dataclasses.MISSING:
        return dataclasses.MISSING
    kind = str(field.metadata.get("kafka_type", ""))
    if _is_tuple(hint):
        return ()
    if type(None) in typing.get_args(hint):
        return None
    return timedelta(0) if kind.startswith("timedelta") else _ZEROS.get(kind, 0)


def _is_tuple(hint: Any) -> bool:
    return any(typing.get_origin(each) is tuple for each in (hint, *typing.get_args(hint)))


def _leaves(hint: Any) -> tuple[Any, ...]:
    inner = typing.get_args(hint)
    return tuple(leaf for each in inner for leaf in _leaves(each)) if inner else (hint,)


def _listed(values: Any) -> object:
    return None if values is None else tuple(values)


def _as_it_is(value: object) -> object:
    return value
