"""A cluster is served on sockets in real time; hostile bytes cost a connection and nothing else."""

from __future__ import annotations

import asyncio
import socket

import pytest
from aiokafka import AIOKafkaProducer

from replication.testing import ClusterSpec, Kafka, kafka_cluster
from replication.testing.sockets import SocketServer
from tests.replication.testing.test_entities import request_frame


def exchange(kafka: Kafka, data: bytes, broker: int = 0) -> bytes:
    """Send bytes to a broker, and return what it answers until it closes the connection or is silent."""
    host, port = kafka.bootstrap_servers.split(",")[broker].split(":")
    with socket.create_connection((host, int(port)), timeout=5) as client:
        client.sendall(data)
        client.settimeout(2)
        answer = b""
        try:
            while got := client.recv(1 << 16):
                answer += got
        except (TimeoutError, ConnectionResetError):
            pass
        return answer


def framed(frame: bytes) -> bytes:
    return len(frame).to_bytes(4, "big") + frame


def test_records_written_over_sockets_are_in_the_log_and_faults_show() -> None:
    async def write(servers: str) -> int:
        producer = AIOKafkaProducer(bootstrap_servers=servers, acks="all")
        await producer.start()
        sent = [await producer.send_and_wait("orders", b"%d" % number, partition=0) for number in range(20)]
        await producer.stop()
        return int(sent[-1].offset)

    with kafka_cluster(racks=("a", "b", "c"), topics={"orders": 3}, seed=1) as kafka:
        assert asyncio.run(write(kafka.bootstrap_servers)) == 19
        assert [record.value for record in kafka.records("orders", 0)] == [b"%d" % number for number in range(20)]
        leader = kafka.kill_leader("orders", 0)
        assert kafka.verdict().is_clean
        with pytest.raises((ConnectionRefusedError, ConnectionResetError, AssertionError)):
            assert exchange(kafka, framed(request_frame(18, 0)), leader)
        kafka.restart(leader)
        assert f"broker {leader} is killed" in " ".join(kafka.lines)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n", "a frame of 1195725856 bytes; allowed are 0 to 104857600"),
        (b"\xff\xff\xff\xff", "a frame of -1 bytes; allowed are 0 to 104857600"),
        (framed(b""), "a request of 0 bytes is shorter than its header"),
        (framed(request_frame(3, 12)[:-5]), "request 3 of version 12 cannot be read"),
        (framed(b"\x00\x47\x00\x00\x00\x00\x00\x00\x00\x00"), "request 71 of version 0 is not served"),
    ],
)
def test_hostile_bytes_break_their_connection_and_the_others_go_on(data: bytes, words: str) -> None:
    with kafka_cluster(brokers=1, topics={"t": 1}) as kafka:
        assert exchange(kafka, data) == b""
        assert words in " ".join(kafka.lines)
        assert len(exchange(kafka, framed(request_frame(18, 2)))) > 100


def test_an_unknown_version_of_api_versions_is_answered_with_those_served() -> None:
    with kafka_cluster(brokers=1) as kafka:
        answer = exchange(kafka, framed(request_frame(18, 4).replace(b"\x00\x12\x00\x04", b"\x00\x12\x00\x63", 1)))
        assert answer[8:10] == b"\x00\x23"  # UNSUPPORTED_VERSION
        assert len(answer) > 100


def test_a_port_that_is_taken_is_an_error_before_anything_runs() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match="address already in use"):
            SocketServer(ClusterSpec(brokers=1, ports=(port,))).start()
