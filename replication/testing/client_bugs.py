"""Reproduce open bugs of public clients on virtual time: each a few lines, one seed, and the cause.

>>> from replication.testing.client_bugs import BUGS
>>> [bug.issue for bug in BUGS]
['aio-libs/aiokafka #1017']

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


async def _sends(producer: Any, count: int) -> list[str]:
    """Send records one after the other; return the name of each error, "" for none."""
    errors = []
    for number in range(count):
        try:
            await producer.send_and_wait("orders", b"%d" % number, partition=0)
            errors.append("")
        except Exception as error:
            errors.append(type(error).__name__)
    return errors


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


BUGS: Final = (
    ClientBug(
        issue="aio-libs/aiokafka #1017",
        client="aiokafka 0.14",
        seen="an idempotent producer fails for ever with OutOfOrderSequenceNumber after some sends have expired",
        cause="a batch that expires has taken its sequence numbers and is never sent, so that the next one has a gap",
        program=expired_batches_take_sequence_numbers,
        options=(("seed", 1), ("topics", {"orders": 1}), ("factor", 1)),
    ),
)
