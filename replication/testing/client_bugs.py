"""Reproduce open bugs of public clients on virtual time: each a few lines, one seed, and the cause.

>>> from replication.testing.client_bugs import BUGS
>>> [bug.issue for bug in BUGS]
['aio-libs/aiokafka #1017', 'aio-libs/aiokafka #1101', 'aio-libs/aiokafka #759']

Source: the issues, and the clients' code at the versions named.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import attrs

from replication.testing.kafka import Kafka
from replication.testing.virtual import run_virtual

AWAY_S: Final = 44
"""How long in s the only broker of a partition is away: longer than a request may take, 40 s."""

PATIENCE_S: Final = 300
"""How long in s a program waits for a client before it says that it hangs."""
HANGS: Final = "hangs"


@attrs.frozen(kw_only=True)
class ClientBug:
    """Hold one bug: the client and version, what is seen, why, and the program, which returns what it saw."""

    issue: str
    client: str
    seen: str
    cause: str
    program: Callable[[Kafka], Awaitable[Any]]
    options: tuple[tuple[str, Any], ...]

    def run(self) -> Any:
        """Run the program and return what it saw."""
        return run_virtual(self.program, **dict(self.options))


async def _outcome(awaitable: Awaitable[Any]) -> str:
    """Return the name of the error of a call, "" for none, HANGS if it does not end."""
    try:
        await asyncio.wait_for(awaitable, PATIENCE_S)
    except TimeoutError:
        return HANGS
    except Exception as error:
        return type(error).__name__
    return ""


async def _sends(producer: Any, count: int) -> list[str]:
    """Send records one after the other; return the name of each error, "" for none."""
    return [await _outcome(producer.send_and_wait("orders", b"%d" % number, partition=0)) for number in range(count)]


async def expired_batches_take_sequence_numbers(kafka: Kafka, *, is_idempotent: bool = True) -> dict[str, list[str]]:
    """Let the leader be away for longer than a request may take, and send again once it is back."""
    from aiokafka import AIOKafkaProducer  # Late: the client is the user's own.

    producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers, acks="all", enable_idempotence=is_idempotent)
    await producer.start()
    before = await _sends(producer, 2)
    leader = kafka.kill_leader("orders", 0)
    asyncio.get_running_loop().call_later(AWAY_S, kafka.restart, leader)
    away = [errors[0] for errors in await asyncio.gather(*(_sends(producer, 1) for _ in range(4)))]
    await asyncio.sleep(AWAY_S)
    after = await _sends(producer, 5)
    await producer.stop()
    return {"before": before, "away": away, "after": after}


async def idempotent_batches_never_expire(kafka: Kafka, *, is_idempotent: bool = True) -> dict[str, str]:
    """Send while no broker is there for as long as the program waits, then stop the producer."""
    from aiokafka import AIOKafkaProducer  # Late: as above.

    options = {"enable_idempotence": is_idempotent, "request_timeout_ms": 5_000, "retry_backoff_ms": 1_000}
    producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers, acks="all", **options)
    await producer.start()
    (before,) = await _sends(producer, 1)
    kafka.kill_leader("orders", 0)
    (away,) = await _sends(producer, 1)
    return {"before": before, "away": away, "stop": await _outcome(producer.stop())}


async def a_failed_start_is_never_repaired(kafka: Kafka, *, is_made_anew: bool = False) -> dict[str, str]:
    """Start a producer before the cluster is up, and send once it is."""
    from aiokafka import AIOKafkaProducer  # Late: as above.

    broker = kafka.kill_leader("orders", 0)
    producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers)
    started = await _outcome(producer.start())
    kafka.restart(broker)
    await asyncio.sleep(AWAY_S)
    if is_made_anew:
        await producer.stop()
        producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers)
        await producer.start()
    (sent,) = await _sends(producer, 1)
    await producer.stop()
    return {"start": started, "send": sent}


_ONE_BROKER: Final = (("seed", 1), ("brokers", 1), ("topics", {"orders": 1}))

BUGS: Final = (
    ClientBug(
        issue="aio-libs/aiokafka #1017",
        client="aiokafka 0.14",
        seen="an idempotent producer fails for ever with OutOfOrderSequenceNumber after some sends have expired",
        cause="a batch that expires has taken its sequence numbers and is never sent, so that the next one has a gap",
        program=expired_batches_take_sequence_numbers,
        options=(("seed", 1), ("topics", {"orders": 1}), ("factor", 1)),
    ),
    ClientBug(
        issue="aio-libs/aiokafka #1101",
        client="aiokafka 0.14",
        seen="send_and_wait() and stop() of an idempotent producer never end while no broker is there",
        cause="a batch that was sent once is sent again without a limit: Sender._can_retry does not ask its age, and "
        "there is no delivery.timeout.ms; stop() waits for it",
        program=idempotent_batches_never_expire,
        options=_ONE_BROKER,
    ),
    ClientBug(
        issue="aio-libs/aiokafka #759",
        client="aiokafka 0.14",
        seen="send() of a producer whose start() failed never ends, though the cluster has come up",
        cause="send() waits for metadata, which only a task updates that a successful start() begins; nothing looks "
        "whether it runs",
        program=a_failed_start_is_never_repaired,
        options=_ONE_BROKER,
    ),
)
