"""The checkers hold a cluster to the responses its clients got: no more after lost ones, no less after retries."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from aiokafka import AIOKafkaProducer

from broker.error_codes import ErrorCode
from broker.ids import Offset, ProducerEpoch, ProducerId
from broker.units import TimeMs
from log.batches.build import BatchSpec, build_batch
from log.record import Record
from replication.checkers import DurabilityReport
from replication.testing import ClusterBrokenError, ClusterSpec, Kafka, kafka_cluster, run_virtual
from replication.testing.connection import Side
from replication.testing.gateway import Gateway
from replication.testing.served_cluster import ServedCluster
from tests.replication.testing.test_entities import request_frame

ATTEMPT_MS: int = 50


@attrs.define
class Sink:
    """Keep the responses of a connection."""

    frames: list[bytes] = attrs.field(factory=list)

    def write(self, frame: bytes) -> None:
        """Take a response."""
        self.frames.append(frame)

    def close(self) -> None:
        """Do nothing."""


def produce(value: bytes, *, producer: int = -1, sequence: int = -1, count: int = 1, acks: int = -1) -> bytes:
    """Return a Produce request of one batch for partition 0 of topic t; -1 is no producer id."""
    spec = BatchSpec(
        producer_id=ProducerId(producer), producer_epoch=ProducerEpoch(min(producer, 0)), base_sequence=sequence
    )
    records = build_batch(spec, [Record(Offset(place), TimeMs(1_000), None, value) for place in range(count)])
    topics = [{"name": "t", "partition_data": [{"index": 0, "records": records}]}]
    return request_frame(0, 9, acks=acks, timeout=5_000, topic_data=topics)


class Clients:
    """Write to a served cluster, each attempt on a connection of its own."""

    def __init__(self) -> None:
        self.served = ServedCluster(ClusterSpec(topics={"t": 1}))
        self.served.begin()

    def send(self, *frames: bytes, becomes: str = "answered") -> int:
        """Send requests at once; return the number of responses. The connection is then "dropped", or "closed"."""
        served, sink = self.served, Sink()
        if becomes == "dropped":
            served.interference.drops["Produce", Side.RESPONSE] = 1
        leader = served.cluster.controller.image.partitions[served.number_of("t", 0)].leader
        connection = served.connect(leader, sink)
        assert connection is not None
        for frame in frames:
            connection.receive(frame)
        if becomes == "closed":
            connection.close()
        served.advance(served.now_ms + ATTEMPT_MS)
        assert connection.is_open == (becomes == "answered")
        return len(sink.frames)

    def judged(self) -> tuple[list[str], DurabilityReport]:
        """Return what is broken, and what was acknowledged and lost."""
        simulation = self.served.simulation
        durability = simulation.durability()
        return list(map(str, simulation.findings_with(durability))), durability


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize(
    "attempts",
    ["answered", "dropped answered", "closed answered", "dropped closed answered", "answered dropped answered"],
)
def test_all_attempts_of_an_idempotent_producer_are_one_write(attempts: str, count: int) -> None:
    """Another producer's write is answered between the attempts."""
    clients = Clients()
    for batch in range(7):
        for place, becomes in enumerate(attempts.split()):
            frame = produce(b"mine", producer=1, sequence=batch * count, count=count)
            assert clients.send(frame, becomes=becomes) == (becomes == "answered")
            if place == 0:
                clients.send(produce(b"other", producer=2, sequence=batch))
    assert len(clients.served.records("t", 0)) == 7 * (count + 1)
    assert clients.judged() == ([], DurabilityReport(7 * (count + 1), 0, ()))


def test_each_attempt_without_a_sequence_is_a_record_and_those_answered_are_acknowledged() -> None:
    clients = Clients()
    for becomes in ("dropped", "closed", "answered"):
        clients.send(produce(b"v"), becomes=becomes)
    assert len(clients.served.records("t", 0)) == 3
    assert clients.judged() == ([], DurabilityReport(1, 0, ()))


def test_what_was_sent_before_a_client_closed_is_carried_out_up_to_a_response() -> None:
    """Selector.maybeReadFromClosingChannel (4.4.0): a response to a channel that closes fails and ends it."""
    clients = Clients()
    frames = [produce(b"%d" % number, acks=1 if number == 5 else 0) for number in range(9)]
    assert clients.send(*frames, becomes="closed") == 0
    assert [record.value for record in clients.served.records("t", 0)] == [b"%d" % number for number in range(6)]
    assert clients.judged() == ([], DurabilityReport(0, 0, ()))


def test_what_was_sent_over_a_socket_before_it_was_closed_is_carried_out() -> None:
    with kafka_cluster(brokers=1, topics={"t": 1}) as kafka:
        host, port = kafka.bootstrap_servers.split(":")
        with socket.create_connection((host, int(port))) as client:
            frames = (produce(b"%d" % number, acks=0) for number in range(50))
            client.sendall(b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames))
        end_s = time.monotonic() + 10
        while len(kafka.records("t", 0)) < 50 and time.monotonic() < end_s:
            time.sleep(0.01)
        assert [record.value for record in kafka.records("t", 0)] == [b"%d" % number for number in range(50)]


def names_another_place(append: Callable[..., Any], *arguments: Any) -> Any:
    """Answer a duplicate with the offset after its own."""
    gateway, number, records, acks, done, out = arguments
    end = gateway.broker.roles[number].log.log.log_end_offset

    def moved(response: Any, out: Any) -> None:
        is_duplicate = response.error is ErrorCode.NONE and response.offset < end
        done(attrs.evolve(response, offset=Offset(response.offset + 1)) if is_duplicate else response, out)

    return append(gateway, number, records, acks, moved, out)


@pytest.mark.parametrize("first", ["dropped", "answered"])
def test_a_duplicate_that_is_answered_with_another_place_is_a_lost_record(
    monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    append = Gateway.append
    monkeypatch.setattr(Gateway, "append", lambda *arguments: names_another_place(append, *arguments))
    clients = Clients()
    clients.send(produce(b"mine", producer=1, sequence=0), becomes=first)
    clients.send(produce(b"other", producer=2, sequence=0))
    clients.send(produce(b"mine", producer=1, sequence=0))
    (lost,) = clients.judged()[1].lost_for_no_reason
    assert (lost.offset, lost.is_anywhere) == (1, False)


@pytest.mark.parametrize("first", ["dropped", "answered"])
def test_an_acknowledged_record_that_is_nowhere_is_lost_whatever_its_attempts(
    monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    """The leader answers without the batch: of a sequence, it writes other bytes than the client's."""
    append = Gateway.append

    def writes_others(gateway: Gateway, number: int, records: bytes, acks: int, done: Any, out: Any) -> ErrorCode:
        spec = BatchSpec(producer_id=ProducerId(1), producer_epoch=ProducerEpoch(0), base_sequence=0)
        others = build_batch(spec, [Record(Offset(0), TimeMs(1_000), None, b"not it")])
        return append(gateway, number, others, acks, done, out)

    monkeypatch.setattr(Gateway, "append", writes_others)
    clients = Clients()
    for becomes in (first, "answered"):
        clients.send(produce(b"mine", producer=1, sequence=0), becomes=becomes)
    (lost,) = clients.judged()[1].lost_for_no_reason
    assert lost.offset == 0


async def write_two(kafka: Kafka) -> None:
    """Write two records, and let the history say that the first was sent after the second was answered."""
    producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers, acks="all")
    await producer.start()
    for _ in range(2):
        await producer.send_and_wait("t", b"v", partition=0)
        await asyncio.sleep(0.1)
    await producer.stop()
    first, second = kafka._served.cluster.history.writes
    first.sent_ms = TimeMs(second.answered_ms + 1)


def test_a_write_behind_one_that_was_answered_before_breaks_the_run_in_either_time() -> None:
    """I22 shows in the clients' history alone, which is checked as a program or a test ends."""
    words = "I22 broken .*lies at 0, though 1 was answered before it was sent"
    with pytest.raises(ClusterBrokenError, match=words):
        run_virtual(write_two, topics={"t": 1})
    with pytest.raises(ClusterBrokenError, match=words), kafka_cluster(topics={"t": 1}) as kafka:
        asyncio.run(write_two(kafka))
