"""Run an asyncio program on the clock of a simulated cluster: an event loop that never waits.

While a callback is ready time stands still but for a microsecond a turn; when none is, the loop runs the cluster up to
its next event or the program's next timer. A program that polls without waiting makes time pass, too: after 20,000
turns in a row without a wait each further turn costs 1 ms, and after 20,000 looks at the clock in one turn each further
look does. Futures and tasks hash by serial number, as `asyncio.wait` walks sets. A program that walks sets of texts by
itself also needs one PYTHONHASHSEED. Threads, subprocesses, signals, and sockets to anything but the cluster are
refused.

Source: ours; the pieces are those of asyncio's BaseEventLoop.
"""

from __future__ import annotations

import asyncio
from asyncio import base_events, transports
from collections.abc import Callable
from itertools import count
from typing import Any, Final, NoReturn, TypeVar
from weakref import WeakSet

from broker.errors import UsageError
from replication.testing.served_cluster import ServedCluster

TURN_S: Final = 1e-6
_SECOND_MS: Final = 1_000
BUSY_COUNT: Final = 20_000
"""How many turns in a row, or looks at the clock in a turn, cost no ms: a program does as many in 0.3 s or less."""
_BUSY_S: Final = 1e-3
IDLE_MS_MAX: Final = 24 * 3_600_000
"""A program that waits so long in ms for nothing but the cluster never ends."""

T = TypeVar("T")
_serial = count()


class NotVirtualError(UsageError, NotImplementedError):
    """Report what a virtual loop does not have; programs may take it for asyncio's own error, as of other platforms."""


class VirtualFuture(asyncio.Future[Any]):
    """Hold a future that hashes by its serial number."""

    def __init__(self, *, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.serial = next(_serial)
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self.serial


class VirtualTask(asyncio.Task[Any]):
    """Hold a task that hashes by its serial number."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.serial = next(_serial)
        super().__init__(*arguments, **options)

    def __hash__(self) -> int:
        return self.serial


class VirtualLoop(base_events.BaseEventLoop):
    """Run callbacks and the cluster on one clock; `limit_ms` ends a program that runs longer."""

    def __init__(self, served: ServedCluster, limit_ms: int) -> None:
        super().__init__()
        self.served = served
        self._limit_ms = limit_ms
        self._now_s = served.now_ms / _SECOND_MS
        self._selector = self
        self.turn_count = 0
        """How many turns the loop has made; one that stands still makes none."""
        self._ready_count = 0
        self._look_count = 0
        self._clock_resolution = TURN_S
        self._pipes: list[_ClientEnd] = []
        self.has_connected = False
        """Whether a client has ever connected to a broker."""
        self._tasks = WeakSet[VirtualTask]()
        self._dropped: dict[int, BaseException] = {}
        self.set_task_factory(_new_task)

    def time(self) -> float:
        """Return the virtual time in s since the cluster began; raise UsageError if it was asked until the limit."""
        self._look_count += 1
        if self._look_count > BUSY_COUNT:
            self._let_pass(self._look_count, 0)
        return self._now_s

    def wall_s(self) -> float:
        """Return what `time.time` shows: the clock of the brokers in s."""
        return self.served.spec.wall_clock_ms / _SECOND_MS + self.time()

    def unhandled(self) -> tuple[Exception, ...]:
        """Return what tasks raised that nobody has waited for, by the order of tasks; none if the program handles it.

        asyncio says so when such a task is collected ("never retrieved"), which would be at no certain time.
        """
        if self.get_exception_handler() is not None:
            return ()
        ended = [task for task in self._tasks if task.done() and not task.cancelled() and task._log_traceback]
        found = self._dropped | {task.serial: task.exception() for task in ended}
        return tuple(each for _, each in sorted(found.items()) if isinstance(each, Exception))

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """Note what a task raised that was collected, and say it as asyncio does."""
        task = context.get("future")
        if isinstance(task, VirtualTask):
            self._dropped[task.serial] = context["exception"]
        super().default_exception_handler(context)

    def create_future(self) -> VirtualFuture:
        """Return a future that hashes by number."""
        return VirtualFuture(loop=self)

    def now(self, action: Callable[[], T]) -> T:
        """Return what `action` returns with the cluster at the loop's time."""
        self.catch_up()
        return action()

    def catch_up(self) -> None:
        """Let the cluster run up to the loop's time."""
        self.served.advance(int(self._now_s * _SECOND_MS))

    # What asyncio calls as its selector.

    def select(self, timeout: float | None) -> list[Any]:
        """Let time pass until a callback is ready or `timeout` is over; there are no file descriptors."""
        self.turn_count += 1
        self._look_count = 0
        if timeout is not None and timeout <= 0:
            self._ready_count += 1
            self._let_pass(self._ready_count, TURN_S)
            return []
        self._ready_count = 0
        end_s = None if timeout is None else self._now_s + timeout
        ready = self._ready  # type: ignore[attr-defined]  # BaseEventLoop's own queue.
        limit_s = self._limit_ms / _SECOND_MS
        while not ready:
            self._check_limit()
            until_s = min(self._now_s + 1, limit_s if end_s is None else min(end_s, limit_s))
            self.served.advance(int(until_s * _SECOND_MS))
            self._now_s = max(self._now_s, self.served.now_ms / _SECOND_MS if ready else until_s)
            if end_s is not None and self._now_s >= end_s:
                break
        return []

    def _let_pass(self, count: int, least_s: float) -> None:
        """Let the time of a turn or look pass, which is the `count`-th in a row, and the cluster run up to it."""
        is_busy = count > BUSY_COUNT
        self._now_s += _BUSY_S if is_busy else least_s
        if is_busy:
            self._check_limit()
        if (now_ms := int(self._now_s * _SECOND_MS)) > self.served.now_ms:
            self.served.advance(now_ms)

    def _check_limit(self) -> None:
        if self._now_s * _SECOND_MS >= self._limit_ms:
            self._ready_count = self._look_count = 0  # What is cancelled now has turns to end.
            what = f"the program did not end within {self._limit_ms:,} ms of virtual time; limit_ms=N allows more"
            raise UsageError(what)

    def _process_events(self, event_list: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    # Connections.

    async def create_connection(  # type: ignore[override]  # Only what clients of Kafka pass.
        self, protocol_factory: Callable[[], asyncio.Protocol], host: Any = None, port: Any = None, **options: Any
    ) -> tuple[asyncio.Transport, asyncio.Protocol]:
        """Connect to a broker of the cluster; raise ConnectionRefusedError where none listens."""
        if options.get("ssl"):
            raise UsageError("TLS is not served on virtual time")
        endpoints = self.served.endpoints.items()
        broker = next((each for each, there in endpoints if (there.host, there.port) == (host, port)), None)
        await asyncio.sleep(1 / _SECOND_MS)
        protocol = protocol_factory()
        end = _ClientEnd(self, protocol)
        if broker is None or not end.open(broker):
            raise ConnectionRefusedError(f"nothing listens at {host}:{port}")
        protocol.connection_made(end)
        return end, protocol

    async def getaddrinfo(self, host: Any, port: Any, **options: Any) -> list[Any]:
        """Return the address as it is: names of brokers are not looked up."""
        return [(2, 1, 6, "", (host, port))]

    def run_in_executor(self, executor: Any, func: Any, *arguments: Any) -> NoReturn:  # type: ignore[override]  # Only what clients of Kafka pass.
        """Refuse: a thread runs on no virtual clock."""
        raise UsageError(f"{getattr(func, '__name__', func)} asks for a thread, which has no virtual time")

    def add_signal_handler(self, sig: int, callback: Callable[..., object], *arguments: Any) -> NoReturn:  # type: ignore[override]  # Nothing is called.
        """Refuse: a signal comes in real time."""
        raise NotVirtualError("a signal has no virtual time; catch NotImplementedError, as for asyncio on Windows")

    async def _make_subprocess_transport(self, *arguments: Any, **options: Any) -> NoReturn:
        """Refuse: a process runs in real time."""
        raise NotVirtualError("a subprocess has no virtual time")

    def close(self) -> None:
        """Close the loop."""
        for end in self._pipes:
            end.abort()
        super().close()


class _ClientEnd(transports.Transport):
    """Carry bytes between a client's protocol and a broker; the transport of the one and the sink of the other."""

    def __init__(self, loop: VirtualLoop, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self._loop = loop
        self._protocol: asyncio.BaseProtocol = protocol
        self._buffer = bytearray()
        self._is_closing = False
        self._connection: Any = None
        self._reads = bytearray()
        self._is_paused = False

    def open(self, broker: Any) -> bool:
        """Connect to a broker; return whether it listens."""
        self._connection = self._loop.served.connect(broker, _BrokerSink(self))
        self._loop._pipes.append(self)
        self._loop.has_connected |= self._connection is not None
        return self._connection is not None

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return nothing of a socket: there is none."""
        return default

    def write(self, data: Any) -> None:
        """Send bytes to the broker."""
        if self._is_closing:
            return
        self._buffer += data
        self._loop.catch_up()
        while (frame := self._connection.next_frame(self._buffer)) is not None:
            self._connection.receive(frame)

    def is_closing(self) -> bool:
        """Return whether the connection is over."""
        return self._is_closing

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Return the client's protocol."""
        return self._protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Set the client's protocol."""
        self._protocol = protocol

    def get_write_buffer_size(self) -> int:
        """Return 0: all that is written is taken at once."""
        return 0

    def pause_reading(self) -> None:
        """Keep what arrives."""
        self._is_paused = True

    def resume_reading(self) -> None:
        """Hand over what has arrived."""
        self._is_paused = False
        if self._reads:
            self._loop.call_soon(self._hand_over)

    def close(self) -> None:
        """Close the connection from the client's side."""
        if not self._is_closing:
            self._is_closing = True
            if self._connection is not None:
                self._connection.close()
            self._loop.call_soon(self._protocol.connection_lost, None)

    abort = close

    def received(self, frame: bytes) -> None:
        """Take a response; the client sees it in the loop's next turn."""
        if not self._reads:
            self._loop.call_soon(self._hand_over)
            self._loop.served.interrupt()
        self._reads += frame

    def broken(self) -> None:
        """Take the end of the connection from the broker's side."""
        if not self._is_closing:
            self._is_closing = True
            self._loop.served.interrupt()
            self._loop.call_soon(self._protocol.connection_lost, ConnectionResetError("the broker has gone"))

    def _hand_over(self) -> None:
        if self._is_paused or not self._reads:
            return
        data, self._reads = bytes(self._reads), bytearray()
        assert isinstance(self._protocol, asyncio.Protocol), self._protocol
        self._protocol.data_received(data)


class _BrokerSink:
    """Pass a connection's responses to the client's end."""

    def __init__(self, end: _ClientEnd) -> None:
        self._end = end

    def write(self, frame: bytes) -> None:
        """Send a response."""
        self._end.received(frame)

    def close(self) -> None:
        """Break the connection."""
        self._end.broken()


def _new_task(loop: Any, coroutine: Any, **options: Any) -> VirtualTask:
    made = VirtualTask(coroutine, loop=loop, **options)
    loop._tasks.add(made)
    return made
