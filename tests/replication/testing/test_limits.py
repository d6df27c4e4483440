"""What clients send and hold is bounded: hostile bytes and clients that never read cost their connection only."""

from __future__ import annotations

import asyncio
import dataclasses
import io
import itertools
import random
import resource
import socket
import time
import typing
import uuid
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import pytest
from aiokafka import AIOKafkaProducer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.serial import entity_writer

from broker.ids import BrokerId
from replication.testing import ClusterSpec, Kafka, kafka_cluster, server_end
from replication.testing.entities import FRAME_BYTES_MAX, build, request_class
from replication.testing.served import SERVED
from replication.testing.served_cluster import ServedCluster
from replication.testing.server_end import ServerEnd
from tests.kafka.protocol_ends import Simulated
from tests.replication.testing.test_entities import request_frame
from tests.replication.testing.test_sockets import framed

pytestmark = pytest.mark.deep
VERSIONS = [(each.api, version) for each in SERVED for version in range(each.least, each.most + 1)]
SERVED_CLUSTER = ServedCluster(ClusterSpec(topics={"t": 1}))
SERVED_CLUSTER.begin()
NUMBERS = (-(1 << 31), -2, -1, 0, 1, 2, 7, 1_000, (1 << 31) - 1)


def drawn(hint: Any, field: dataclasses.Field[Any] | None, chance: random.Random) -> Any:
    """Return a value of a field, often one of the odd ones."""
    inner = [each for each in typing.get_args(hint) if each is not type(None) and each is not Ellipsis]
    if type(None) in typing.get_args(hint) and chance.random() < 0.3:
        return None
    if typing.get_origin(hint) is tuple or any(typing.get_origin(each) is tuple for each in inner):
        leaf = inner[0] if typing.get_origin(hint) is tuple else typing.get_args(inner[0])[0]
        return tuple(drawn(leaf, field, chance) for _ in range(chance.choice((0, 1, 1, 2, 3))))
    leaf = inner[0] if inner else hint
    if dataclasses.is_dataclass(leaf):
        return entity(leaf, chance)
    kind = str(field.metadata.get("kafka_type", "")) if field is not None else ""
    number = chance.choice(NUMBERS)
    if kind.startswith("timedelta"):
        return timedelta(milliseconds=number)
    if kind.startswith("datetime"):
        return datetime.fromtimestamp(chance.choice((0, 10_000)), UTC)
    values: dict[str, Any] = {
        "string": chance.choice(("", "t", "g", "orders", "__consumer_offsets", "0", "é" * 300)),
        "bool": chance.random() < 0.5,
        "bytes": chance.randbytes(chance.choice((0, 3, 70))),
        "records": chance.randbytes(chance.choice((0, 61, 200))),
        "uuid": uuid.UUID(int=chance.choice((1, 1 << 127))),
        "int8": max(-128, min(127, number)),
        "int16": max(-(1 << 15), min((1 << 15) - 1, number)),
        "uint16": number % (1 << 16),
        "float64": float(number),
    }
    return values.get(kind, number)


def entity(of: Any, chance: random.Random) -> Any:
    """Return an entity of drawn fields."""
    hints = typing.get_type_hints(of)
    return of(**{field.name: drawn(hints[field.name], field, chance) for field in dataclasses.fields(of)})


def drawn_frame(chance: random.Random) -> bytes:
    """Return a request of drawn fields, of which some bytes may be changed, missing or put in."""
    api, version = chance.choice(VERSIONS)
    body_class = request_class(api, version)
    frame = io.BytesIO()
    header_class = body_class.__header_schema__
    names = {"request_api_key": api, "request_api_version": version, "correlation_id": 7, "client_id": "me"}
    entity_writer(header_class)(frame, build(header_class, names))
    entity_writer(body_class)(frame, entity(body_class, chance))
    data = bytearray(frame.getvalue())
    for _ in range(chance.choice((0, 0, 1, 3))):
        at = chance.randrange(len(data))
        data[at : at + chance.choice((0, 1, 4))] = chance.randbytes(chance.choice((0, 1, 4)))
    return bytes(data)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 1 << 32))
def test_no_request_however_odd_ends_more_than_its_connection(seed: int) -> None:
    served = ServedCluster(ClusterSpec(topics={"orders": 2, "t": 1}, seed=seed))
    served.begin()
    end, chance = Simulated(served), random.Random(seed)
    for place in range(100):
        end.exchange(place % 3, drawn_frame(chance), is_answered=False)
    answer = end.exchange(0, request_frame(18, 0), is_answered=True)
    assert answer is not None
    assert len(answer) > 100
    assert not served.simulation.findings


@attrs.define(eq=False)
class Piped(asyncio.Transport):
    """Stand for a socket: what is written can be looked at."""

    written: bytearray = attrs.field(factory=bytearray)
    is_paused: bool = False
    is_closed: bool = False

    def write(self, data: Any) -> None:
        self.written += data

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def abort(self) -> None:
        self.is_closed = True


@attrs.define
class Driver:
    """Stand for a socket server whose time moves when a client waits."""

    served: ServedCluster
    ends: set[ServerEnd] = attrs.field(factory=set)

    def catch_up(self) -> None:
        """Time stands still while bytes arrive."""

    def wake(self) -> None:
        self.served.advance(self.served.now_ms)

    def note(self, line: str) -> None:
        self.served.cluster.trace.line(self.served.now_ms, line)


REQUESTS = [(18, 0), (18, 3), (3, 1), (3, 12), (60, 0), (16, 2)]
BAD_ENDS = (
    b"",
    b"\xff\xff\xff\xff",
    (FRAME_BYTES_MAX + 1).to_bytes(4, "big"),
    framed(b"\0"),
    b"\0\0",
    framed(b"abcdefgh"),
)


@settings(max_examples=60, deadline=None)
@given(
    asked=st.lists(st.sampled_from(REQUESTS), max_size=12),
    bad_end=st.sampled_from(BAD_ENDS),
    pieces=st.lists(st.integers(1, 60), min_size=1, max_size=9),
)
def test_frames_are_answered_in_order_however_they_are_cut(
    asked: list[tuple[int, int]], bad_end: bytes, pieces: list[int]
) -> None:
    frames = [request_frame(*each, correlation_id=place) for place, each in enumerate(asked)]
    stream, driver, transport = b"".join(map(framed, frames)) + bad_end, Driver(SERVED_CLUSTER), Piped()
    end = ServerEnd(driver, BrokerId(0))
    end.connection_made(transport)
    at = 0
    for piece in itertools.cycle(pieces):
        if at >= len(stream) or transport.is_closed:
            break
        end.data_received(stream[at : at + piece])
        at += piece
    SERVED_CLUSTER.advance(SERVED_CLUSTER.now_ms + 100)
    answered = []
    written = bytes(transport.written)
    while written:
        size_bytes = int.from_bytes(written[:4], "big")
        answered.append(int.from_bytes(written[4:8], "big"))
        written = written[4 + size_bytes :]
    assert answered == list(range(len(asked)))
    assert transport.is_closed is (bad_end not in (b"", b"\0\0"))
    end.connection_lost(None)
    assert not driver.ends


def connected(kafka: Kafka, broker: int) -> socket.socket:
    host, port = kafka.bootstrap_servers.split(",")[broker].split(":")
    return socket.create_connection((host, int(port)), timeout=5)


def wait_for(words: str, kafka: Kafka) -> None:
    """Wait until a line of the log has these words; fail after 10 s."""
    for _ in range(200):
        if any(words in line for line in kafka.lines):
            return
        time.sleep(0.05)
    raise AssertionError(f"no line has {words!r}: {kafka.lines[-3:]}")


def test_a_thousand_connections_and_clients_that_never_read_leave_a_real_client_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def write(servers: str, count: int) -> int:
        producer = AIOKafkaProducer(bootstrap_servers=servers, acks="all")
        await producer.start()
        sent = [await producer.send_and_wait("t", b"%d" % number, partition=0) for number in range(count)]
        await producer.stop()
        return int(sent[-1].offset)

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4_096), hard))  # Both ends of each socket are here.
    monkeypatch.setattr(server_end, "UNREAD_S_MAX", 1)
    monkeypatch.setattr(server_end, "CONNECTION_COUNT_MAX", 400)
    asking = framed(request_frame(3, 0)) * 200_000  # Far more than the buffers of two sockets.
    with kafka_cluster(topics={"t": 1, "wide": 200}) as kafka, ExitStack() as clients:
        assert asyncio.run(write(kafka.bootstrap_servers, 1)) == 0
        # Some say nothing, some half a frame, on each broker.
        for place in range(999):
            client = clients.enter_context(connected(kafka, place % 3))
            client.sendall((b"", b"\0\0", b"\0\0\1\0abc")[place % 3])
        deaf = clients.enter_context(connected(kafka, 0))
        deaf.settimeout(2)
        sent = 0
        with suppress(TimeoutError, ConnectionError):
            while sent < len(asking):
                sent += deaf.send(memoryview(asking)[sent : sent + 65_536])
        assert asyncio.run(write(kafka.bootstrap_servers, 200)) == 200
        assert sent < len(asking), "the broker takes all, however little is read"
        wait_for("the client has read nothing for 1 second", kafka)
        for _ in range(100):
            clients.enter_context(connected(kafka, 1))
        wait_for("broker 1 has 400 connections: one more refused", kafka)
        assert asyncio.run(write(kafka.bootstrap_servers.split(",")[0], 20)) == 220
        assert kafka.verdict().is_clean


def test_what_all_clients_have_begun_to_send_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_end, "REQUESTS_BYTES_MAX", 1 << 20)
    with kafka_cluster(brokers=1) as kafka, connected(kafka, 0) as one, connected(kafka, 0) as other:
        one.sendall((1 << 20).to_bytes(4, "big") + bytes(600_000))
        with suppress(ConnectionError):
            other.sendall((1 << 20).to_bytes(4, "big") + bytes(600_000))
        wait_for("clients have begun requests of more than 1048576 bytes together", kafka)
        assert sum("clients have begun" in line for line in kafka.lines) == 1
