"""Unmodified clients in C and Python write, read, join groups and administer a cluster served on sockets."""

from __future__ import annotations

import time
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import KafkaException, NewTopic
from kafka import KafkaConsumer, KafkaProducer

from replication.testing import kafka_cluster

pytestmark = pytest.mark.deep


def read_by_two(servers: str, protocol: str, count: int) -> int:
    """Return how many records two members of one group read, at most `count`, within half a minute."""
    settings = {"bootstrap.servers": servers, "group.id": protocol, "auto.offset.reset": "earliest"}
    members = [Consumer({**settings, "group.protocol": protocol}) for _ in range(2)]
    for member in members:
        member.subscribe(["orders"])
    read, until_s = 0, time.monotonic() + 30
    while read < count and time.monotonic() < until_s:
        read += sum(message.error() is None for member in members for message in member.consume(500, 0.1))
    for member in members:
        member.close()
    return read


def test_librdkafka_writes_with_idempotence_and_every_codec_and_reads_in_both_kinds_of_groups() -> None:
    failed: list[Any] = []
    with kafka_cluster(topics={"orders": 3}, seed=1) as kafka:
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
        for number in range(2_000):
            producer.produce("orders", b"%d" % number, on_delivery=lambda error, _: failed.append(error))
            producer.poll(0)
        assert producer.flush(30) == 0
        for codec in ("gzip", "snappy", "lz4", "zstd"):
            compressing = Producer({"bootstrap.servers": kafka.bootstrap_servers, "compression.type": codec})
            for _ in range(10):
                compressing.produce("orders", b"x" * 100)
            assert compressing.flush(30) == 0
        assert [error for error in failed if error is not None] == []
        assert [read_by_two(kafka.bootstrap_servers, each, 2_040) for each in ("classic", "consumer")] == [2_040] * 2
        assert kafka.verdict().is_clean


def test_librdkafka_creates_and_deletes_topics() -> None:
    with kafka_cluster(topics={"orders": 3}, seed=1) as kafka:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        made = admin.create_topics([NewTopic("new", 4, 3), NewTopic("orders", 4, 3)])
        assert made["new"].result() is None
        with pytest.raises(KafkaException, match="Topic 'orders' already exists"):
            made["orders"].result()
        assert len(admin.list_topics(timeout=10).topics["new"].partitions) == 4
        assert admin.delete_topics(["new"])["new"].result() is None


def test_kafka_python_writes_and_reads_in_a_group_while_responses_are_lost() -> None:
    with kafka_cluster(topics={"orders": 3}, seed=1) as kafka:
        producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, enable_idempotence=True, acks="all")
        kafka.drop("Produce", count=2, response=True)
        sent = [producer.send("orders", b"%d" % number) for number in range(300)]
        assert all(each.get(timeout=30) for each in sent)
        consumer = KafkaConsumer(
            "orders", bootstrap_servers=kafka.bootstrap_servers, group_id="g", auto_offset_reset="earliest"
        )
        read = [next(consumer).value for _ in range(300)]
        consumer.close()
        producer.close()
        assert sorted(map(int, read)) == list(range(300))
        assert sum(len(kafka.records("orders", partition)) for partition in range(3)) == 300
        assert kafka.verdict().is_clean
