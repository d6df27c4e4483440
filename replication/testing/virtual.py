"""Run an asyncio program with unmodified clients against a cluster on virtual time.

Source: ours.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

from broker.units import MINUTE_MS
from replication.simulation.fault import Fault
from replication.testing.cluster_spec import ClusterSpec
from replication.testing.kafka import Kafka, checked
from replication.testing.served_cluster import ServedCluster
from replication.testing.virtual_loop import VirtualLoop, virtual_process

T = TypeVar("T")
LIMIT_MS: Final = 120 * MINUTE_MS
STOP_S: Final = 300
"""How long in s a program may take to close its clients once it was cancelled: some requests' timeouts."""


def run_virtual(
    main: Callable[[Kafka], Awaitable[T]],
    seed: int = 1,
    brokers: int = 3,
    topics: Mapping[str, int] | None = None,
    faults: tuple[Fault, ...] | None = None,
    *,
    limit_ms: int = LIMIT_MS,
    **options: Any,
) -> T:
    """Run `main(kafka)` to its end on the cluster's own clock, and return its result.

    `options` are further fields of `ClusterSpec`. Leaders stamp the records, as some clients' C code reads the real
    clock. Raises UsageError for what has no virtual time (a thread, time.sleep, another host), and for a program that
    runs longer than `limit_ms`; ClusterBrokenError if an invariant of the cluster broke.
    """
    options.setdefault("is_append_time", True)
    spec = ClusterSpec(brokers=brokers, topics=topics or {}, seed=seed, faults=faults or (), **options)
    run = VirtualRun(spec, limit_ms)
    result = run.complete(main)
    checked(run.kafka, spec)
    return result


class VirtualRun:
    """Hold a cluster on virtual time, and run one program against it."""

    def __init__(self, spec: ClusterSpec, limit_ms: int = LIMIT_MS) -> None:
        self.served = ServedCluster(spec)
        self.served.begin()
        self._loop = VirtualLoop(self.served, limit_ms)
        self._seed = spec.seed
        self.kafka = Kafka(self.served, self._loop.now)

    def complete(self, main: Callable[[Kafka], Awaitable[T]]) -> T:
        """Run `main(kafka)` to its end and return its result; call it once."""
        loop = self._loop
        with virtual_process(loop, self._seed):
            try:
                asyncio.set_event_loop(loop)
                return loop.run_until_complete(_as_coroutine(main(self.kafka)))
            finally:
                try:
                    _cancel_all(loop)
                finally:
                    asyncio.set_event_loop(None)
                    loop.close()


async def _as_coroutine(awaitable: Awaitable[T]) -> T:
    return await awaitable


def _cancel_all(loop: VirtualLoop) -> None:
    """Cancel the tasks that the program left behind, and let them end."""
    left = sorted(asyncio.all_tasks(loop), key=hash)
    for task in left:
        task.cancel()
    if left:
        ended, _ = loop.run_until_complete(asyncio.wait(left, timeout=STOP_S))
        for task in ended:
            if not task.cancelled():
                task.exception()  # Told to stop, a task may raise.
