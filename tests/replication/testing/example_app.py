"""Applications that tests run under faults."""

from __future__ import annotations

import asyncio
import sys
from typing import Final

from aiokafka import AIOKafkaProducer
from aiokafka.errors import OutOfOrderSequenceNumber

from replication.testing import ClusterSpec, Kafka

CLUSTER: Final = ClusterSpec(topics={"orders": 3})
HELD: Final[list[asyncio.Future[None]]] = []


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


class TalkativeError(Exception):
    """Show itself as errors of aiokafka do."""

    def __str__(self) -> str:
        return f"TalkativeError: {self.args!r}"


async def talks(_kafka: Kafka) -> None:
    """Raise an error with a long text of many lines."""
    raise TalkativeError("to be read\n at leisure\n", "on and " * 100)


async def _deaths(kafka: Kafka) -> int:
    """Return how many brokers have died within 40 s."""
    await asyncio.sleep(40)
    return sum("dies" in line for line in kafka.lines)


async def drifts_by_class(kafka: Kafka) -> None:
    """Raise one error after two deaths, and another one after fewer."""
    raise ValueError if await _deaths(kafka) > 1 else KeyError


async def drifts_by_line(kafka: Kafka) -> None:
    """Fail at one line after two deaths, and at another one after fewer."""
    deaths = await _deaths(kafka)
    assert deaths > 1
    assert deaths > 2


async def leaves(_kafka: Kafka) -> None:
    """End the process, as scripts do."""
    await asyncio.sleep(1)
    sys.exit(3)


async def leaves_in_a_task(_kafka: Kafka) -> None:
    """End the process from a task, while the program waits."""

    async def leave() -> None:
        raise SystemExit(4)

    asyncio.ensure_future(leave())  # noqa: RUF006  # Nobody holds it, which is what many programs do.
    await asyncio.sleep(60)


async def generator_exit(_kafka: Kafka) -> None:
    """Raise what closes generators."""
    raise GeneratorExit


async def cancelled(_kafka: Kafka) -> None:
    """Wait for a task that was cancelled."""
    task = asyncio.ensure_future(asyncio.sleep(60))
    task.cancel()
    await task


async def asserts(_kafka: Kafka) -> None:
    """Assert without a text."""
    await asyncio.sleep(1)
    wanted: list[str] = []
    assert wanted


async def headless(kafka: Kafka) -> None:
    """Kill the leader of a partition that has none."""
    for broker in (0, 1, 2):
        kafka.kill(broker)
    await asyncio.sleep(30)
    kafka.kill_leader("orders", 0)


async def late(_kafka: Kafka) -> None:
    """Assert what is wrong, after three minutes."""
    await asyncio.sleep(180)
    raise ValueError("too late to be seen")


async def stubborn(_kafka: Kafka) -> None:
    """Go on when cancelled."""
    while True:
        try:
            await asyncio.sleep(3_600)
        except asyncio.CancelledError:
            continue


async def serves(kafka: Kafka) -> None:
    """Write a record, and then wait for ever."""
    await calm(kafka)
    await asyncio.Event().wait()


async def trusts(kafka: Kafka) -> None:
    """Write ten records, half a minute after the beginning of faults, to a topic of one replica."""
    await calm(kafka)
    await asyncio.sleep(30)


async def _dies() -> None:
    await asyncio.sleep(1)
    raise RuntimeError("in the background")


async def leaves_a_task(kafka: Kafka) -> None:
    """Begin a task that dies, and neither hold it nor wait for it."""
    asyncio.ensure_future(_dies())  # noqa: RUF006  # Nobody holds it, which is what many programs do.
    await asyncio.sleep(5)


async def holds_a_task(kafka: Kafka) -> None:
    """Begin a task that dies, and hold it without waiting for it."""
    HELD[:] = [asyncio.ensure_future(_dies())]
    await asyncio.sleep(5)


async def polls(_kafka: Kafka) -> None:
    """Give way for ever, and never wait."""
    while True:
        await asyncio.sleep(0)


async def _at_rest() -> None:
    """Take no cluster."""
