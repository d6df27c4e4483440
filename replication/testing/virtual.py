"""Run an asyncio program with unmodified clients against a cluster on virtual time.

Source: ours.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable, iscoroutine, signature
from typing import Any, Final, TypeVar

import attrs

from broker.errors import UsageError
from broker.units import MINUTE_MS
from replication.simulation.fault import Fault
from replication.testing.cluster_spec import ClusterSpec
from replication.testing.kafka import Kafka, checked
from replication.testing.served_cluster import ServedCluster
from replication.testing.virtual_loop import VirtualLoop
from replication.testing.virtual_process import virtual_process

T = TypeVar("T")
HOST: Final = "virtual-time.invalid"
"""The host of virtual brokers: nobody listens there (RFC 6761), and a client in C that looks for it names it."""
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
    clock. Raises UsageError for what has no virtual time (a thread, time.sleep, a socket), for a program that runs
    longer than `limit_ms`, and where an event loop runs already; ClusterBrokenError if an invariant of the cluster
    broke.
    """
    options.setdefault("is_append_time", True)
    spec = ClusterSpec(brokers=brokers, topics=topics or {}, seed=seed, faults=faults or (), **options)
    run = VirtualRun(spec, limit_ms)
    result = run.complete(main)
    checked(run.kafka, spec)
    return result


class VirtualRun:
    """Hold a cluster on virtual time, and run one program against it; raise UsageError where an event loop runs."""

    def __init__(self, spec: ClusterSpec, limit_ms: int = LIMIT_MS) -> None:
        if asyncio._get_running_loop() is not None:
            what = "virtual time has an event loop of its own, and one runs here already"
            raise UsageError(f"{what}; call run_virtual outside of coroutines (in a notebook, from a thread)")
        self.served = ServedCluster(attrs.evolve(spec, host=HOST))
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
                return loop.run_until_complete(_begun(main, self.kafka))
            finally:
                try:
                    _cancel_all(loop)
                finally:
                    asyncio.set_event_loop(None)
                    loop.close()


def fault_of_main(main: object) -> str | None:
    """Return why `main` is no function of the cluster, or None."""
    name = getattr(main, "__name__", repr(main))
    if not callable(main):
        return f"main is {main!r}; wanted is a function, not what it returns"
    try:
        signature(main).bind(None)
    except ValueError:
        return None  # Some callables in C have no signature.
    except TypeError as error:
        return f"{name} cannot be called with the cluster alone: {error}; write `async def {name}(kafka)`"
    return None


def _begun(main: Callable[[Kafka], Awaitable[T]], kafka: Kafka) -> Awaitable[T]:
    """Return what `main(kafka)` returns; raise UsageError if nobody can wait for it."""
    if fault := fault_of_main(main):
        if iscoroutine(main):
            main.close()  # Or Python would warn that nobody has awaited it.
        raise UsageError(fault)
    begun = main(kafka)
    if not isawaitable(begun):
        name = getattr(main, "__name__", repr(main))
        raise UsageError(f"{name} is no coroutine function and returned {begun!r}; write `async def {name}(kafka)`")
    return begun


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
