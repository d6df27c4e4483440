"""Ask two clusters the same request of Kafka's protocol: the simulated one on virtual time, and a released one.

What it decides: how a request that names things by symbols becomes one of each cluster, and how the ids in a response
become symbols again. Symbols are values of `Ref`: a broker by its place, a topic's id, a member, a producer id.

Source: ours.
"""

from __future__ import annotations

import dataclasses
import enum
import io
import socket
import uuid
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import cache
from typing import Any, Final, Protocol

import attrs
from kio.serial import entity_reader, entity_writer

from broker.ids import BrokerId
from replication.testing.entities import build, request_class, response_class
from replication.testing.served_cluster import ServedCluster

ANSWER_MS_MAX: Final = 60_000
_RANDOM_UUID: Final = 4
"""The version of an id that a cluster draws; of a topic that was only validated nobody knows it."""
CLIENT_ID: Final = "differential"
_writer = cache(entity_writer)
_reader = cache(entity_reader)
BROKER_FIELDS: Final = frozenset(
    (
        *("node_id", "leader_id", "broker_id", "controller_id", "replica_nodes", "isr_nodes", "offline_replicas"),
        *("eligible_leader_replicas", "last_known_elr"),
        *("replicas", "adding_replicas", "removing_replicas", "preferred_read_replica"),
    )
)
"""The fields that hold ids of brokers, which begin at 0 in the simulated cluster and at 1 in the other."""


@attrs.frozen
class Ref:
    """Stand for a value that each cluster has its own of; `kind` is broker, topic, member or producer."""

    kind: str
    name: Any


class End(Protocol):
    """Define one cluster: ask a broker, by its place, and get the response as plain values, None for none."""

    first_id: int
    known: dict[Ref, Any]

    def exchange(self, broker: int, frame: bytes, *, is_answered: bool) -> bytes | None:
        """Return the response to a frame, without its length; None if the broker closed the connection."""
        ...


class Simulated:
    """Ask a simulated cluster: time goes on until the response is there."""

    first_id = 0

    def __init__(self, served: ServedCluster) -> None:
        self.served = served
        self.known: dict[Ref, Any] = {}

    def exchange(self, broker: int, frame: bytes, *, is_answered: bool) -> bytes | None:
        """Return the response."""
        sink = _Kept()
        served = self.served
        connection = served.connect(BrokerId(broker), sink)
        assert connection is not None, broker
        connection.receive(frame)
        end_ms = served.now_ms + ANSWER_MS_MAX
        while not sink.frames and connection.is_open and served.now_ms < end_ms:
            served.advance(served.next_event_ms)
            if not is_answered and served.now_ms > end_ms - ANSWER_MS_MAX + 100:
                connection.close()
                return b""
        connection.close()
        return sink.frames[0][4:] if sink.frames else None

    def sleep(self, for_ms: int) -> None:
        """Let time pass."""
        self.served.advance(self.served.now_ms + for_ms)


@attrs.define
class _Kept:
    frames: list[bytes] = attrs.field(factory=list)
    is_closed: bool = False

    def write(self, frame: bytes) -> None:
        self.frames.append(frame)

    def close(self) -> None:
        self.is_closed = True


class Released:
    """Ask a released cluster at these ports, one connection a request."""

    first_id = 1

    def __init__(self, ports: Sequence[int]) -> None:
        self.ports = tuple(ports)
        self.known: dict[Ref, Any] = {}
        self._open: dict[int, socket.socket] = {}

    def exchange(self, broker: int, frame: bytes, *, is_answered: bool) -> bytes | None:
        """Return the response."""
        client = self._open.get(broker)
        if client is None:
            client = self._open[broker] = socket.create_connection(("127.0.0.1", self.ports[broker]), timeout=90)
        client.sendall(len(frame).to_bytes(4, "big") + frame)
        if not is_answered:
            # The connection is closed for a write that failed; else it answers the next request.
            client.sendall(bytes.fromhex("0000000a001200000000000affff"))
        size = _received(client, 4)
        if size is None:
            self._open.pop(broker).close()
            return None
        data = _received(client, int.from_bytes(size, "big"))
        return data if is_answered else b""

    def close(self) -> None:
        """Close the connections."""
        for client in self._open.values():
            client.close()


def _received(client: socket.socket, count: int) -> bytes | None:
    data = b""
    while len(data) < count:
        got = client.recv(count - len(data))
        if not got:
            return None
        data += got
    return data


def ask(end: End, broker: int, api: int, version: int, values: Mapping[str, Any]) -> Any:
    """Send one request to a broker of a cluster; return the response as plain values, "closed" for none."""
    body_class = request_class(api, version)
    header = {"request_api_key": api, "request_api_version": version, "correlation_id": 7, "client_id": CLIENT_ID}
    buffer = io.BytesIO()
    _writer(body_class.__header_schema__)(buffer, build(body_class.__header_schema__, header))
    _writer(body_class)(buffer, build(body_class, resolved(end, values)))
    is_answered = not (api == 0 and values["acks"] == 0)
    frame = end.exchange(broker, buffer.getvalue(), is_answered=is_answered)
    if not frame:
        return "closed" if frame is None else "open"
    answer_class = response_class(api, version)
    head, size = _reader(answer_class.__header_schema__)(frame, 0)
    assert head.correlation_id == 7
    return plain(_reader(answer_class)(frame, size)[0])


def resolved(end: End, value: Any) -> Any:
    """Return a request's values with a cluster's own in the place of symbols."""
    if isinstance(value, Ref):
        if value.kind == "broker":
            return end.first_id + value.name if value.name >= 0 else value.name
        if value.kind == "broker_name":
            return str(end.first_id + value.name)
        if value.kind in ("generation", "epoch"):
            return end.known.get(value, 1)
        return end.known.get(value, "no-such-member" if value.kind == "member" else uuid.UUID(int=5))
    if isinstance(value, Mapping):
        return {name: resolved(end, each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [resolved(end, each) for each in value]
    return value


def plain(value: Any) -> Any:
    """Return an entity as dicts, lists and values."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    if isinstance(value, timedelta):
        return round(value.total_seconds() * 1_000)
    return value.name if isinstance(value, enum.Enum) else value


def symbolic(end: End, value: Any, field: str = "") -> Any:
    """Return a response with symbols in the place of a cluster's own ids."""
    if isinstance(value, dict):
        return {name: symbolic(end, each, name) for name, each in value.items()}
    if isinstance(value, list):
        return [symbolic(end, each, field) for each in value]
    if field in BROKER_FIELDS and isinstance(value, int):
        return value - end.first_id if value >= 0 else value
    if field == "resource_name" and value.isdigit():
        return str(int(value) - end.first_id)
    if isinstance(value, str | uuid.UUID):
        is_drawn = isinstance(value, uuid.UUID) and value.version == _RANDOM_UUID
        other = "<an id>" if is_drawn else value
        return next((f"<{ref.kind} {ref.name}>" for ref, own in end.known.items() if own == value), other)
    return value
