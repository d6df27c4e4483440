"""Serve a simulated cluster on sockets of 127.0.0.1 in real time: one port a broker, one thread for all.

What it decides: when the simulation moves: up to the present before each request is taken, and at its next event.

Source: ours.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, TypeVar

import attrs

from replication.testing.cluster_spec import ClusterSpec
from replication.testing.fault_watch import OnNotice, discard
from replication.testing.served_cluster import ModelError, ServedCluster
from replication.testing.server_end import ServerEnd

_SECOND_MS: Final = 1_000
_CATCH_UP_MS: Final = 1_000
"""The most simulated time that is made up for at once, after the machine stood still."""

T = TypeVar("T")


class SocketServer:
    """Serve one cluster from a thread; `start` returns when the brokers listen."""

    def __init__(self, spec: ClusterSpec, on_fault: OnNotice = discard) -> None:
        self._spec = spec
        self._on_fault = on_fault
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="brokerside", daemon=True)
        self._servers: list[asyncio.Server] = []
        self._timer: asyncio.TimerHandle | None = None
        self._zero_s = 0.0
        self._is_closed = False
        self.on_failure: Callable[[], None] = _do_nothing
        """Called when the model has raised an error: it runs no further, and the verdict says why."""
        self.served: ServedCluster
        self.ends: set[ServerEnd] = set()
        """The connected ends; only sums over them are formed."""

    def start(self) -> None:
        """Bind the ports, begin the cluster, and serve; raises OSError for a port that is taken."""
        self._thread.start()
        try:
            self.call_async(self._start())
        except BaseException:
            self._end_thread()
            raise

    async def _start(self) -> None:
        loop, ports = asyncio.get_running_loop(), []
        wanted = self._spec.ports or (0,) * self._spec.brokers
        for broker, port in zip(self._spec.ids, wanted, strict=True):
            made = partial(ServerEnd, self, broker)
            server = await loop.create_server(made, self._spec.host, port, start_serving=False)
            self._servers.append(server)
            ports.append(server.sockets[0].getsockname()[1])
        self._spec = attrs.evolve(self._spec, ports=tuple(ports), wall_clock_ms=round(time.time() * _SECOND_MS))
        self.served = ServedCluster(self._spec, self._on_fault)
        self.served.begin()
        loop.set_exception_handler(lambda _, context: self.note(str(context.get("exception") or context["message"])))
        for server in self._servers:
            await server.start_serving()
        self._zero_s = loop.time() - self.served.now_ms / _SECOND_MS
        self._arm()

    def note(self, line: str) -> None:
        """Append a line to the log of the run."""
        self.served.cluster.trace.line(self.served.now_ms, line)

    def call(self, action: Callable[[], T]) -> T:
        """Run `action` in the server's thread, after the cluster has been brought up to the present."""

        async def run() -> T:
            self.catch_up()
            try:
                return action()
            finally:
                self._arm()

        return self.call_async(run())

    def call_async(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the server's thread, and return its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def stop(self) -> None:
        """Close the ports and connections, and end the thread; the cluster can still be looked at."""

        async def close() -> None:
            self._close()

        self.call_async(close())
        self._end_thread()

    def _close(self) -> None:
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        for server in self._servers:
            server.close()
        for connection in list(self.served.connections):
            connection.abort()

    def _end_thread(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # Time.

    def catch_up(self) -> None:
        """Bring the cluster up to the present."""
        if self._is_closed:
            return
        now_ms = round((self._loop.time() - self._zero_s) * _SECOND_MS)
        behind_ms = now_ms - self.served.now_ms
        if behind_ms > _CATCH_UP_MS:
            self._zero_s += (behind_ms - _CATCH_UP_MS) / _SECOND_MS
            now_ms = self.served.now_ms + _CATCH_UP_MS
        try:
            self.served.advance(now_ms)
        except ModelError:  # It ends the run, and not the thread.
            self._close()
            self.on_failure()

    def wake(self) -> None:
        """Go on with the cluster, and set the timer for its next event."""
        self.catch_up()
        self._arm()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._is_closed:
            return
        at_s = self._zero_s + self.served.next_event_ms / _SECOND_MS
        self._timer = self._loop.call_at(at_s, self.wake)


def _do_nothing() -> None:
    pass
