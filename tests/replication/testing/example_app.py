"""Applications that tests run under faults."""

from __future__ import annotations

import asyncio
from typing import Final

from aiokafka import AIOKafkaProducer
from aiokafka.errors import OutOfOrderSequenceNumber

from replication.testing import ClusterSpec, Kafka

CLUSTER: Final = ClusterSpec(topics={"orders": 3})


async def main(kafka: Kafka) -> None:
    """Write five records a second for ever; a sequence out of order ends it, other errors do not."""
    producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers, acks="all", enable_idempotence=True)
    await producer.start()
    for number in range(1_000_000):
        try:
            await producer.send_and_wait("orders", b"%d" % number)
        except OutOfOrderSequenceNumber:
            raise
        except Exception:
            await asyncio.sleep(0.2)
        await asyncio.sleep(0.2)


async def calm(kafka: Kafka) -> None:
    """Write ten records and end."""
    producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers, acks="all")
    await producer.start()
    for number in range(10):
        await producer.send_and_wait("orders", b"%d" % number)
    await producer.stop()


async def wrong(kafka: Kafka) -> None:
    """Raise whenever a broker is killed."""
    while not any("dies" in line for line in kafka.lines):
        await asyncio.sleep(1)
    raise ValueError("a broker\nhas died")
