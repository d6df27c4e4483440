"""Connect a client's socket to a broker, and bound the memory that one client and all of them take.

How: a connection has one request under way and one response unread, as Kafka mutes a channel; meanwhile its bytes are
left in the socket.

Limits: a frame has at most 100 MiB, a broker takes 1,000 connections, all clients' unfinished requests and unread
responses 256 MiB each, and a client may read nothing for half a minute; a client over a limit is disconnected, which
one line of the run's log says.

Source: ours; Kafka's socket.request.max.bytes and queued.max.request.bytes, network.SocketServer; the other limits are
ours.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from broker.ids import BrokerId
from broker.wording import counted
from replication.testing.connection import Connection
from replication.testing.served_cluster import ServedCluster

CONNECTION_COUNT_MAX: Final = 1_000
"""The connections of a broker: so many idle ones took 2.4 MiB (`tests.benchmarks.server`)."""
REQUESTS_BYTES_MAX: Final = 256 << 20
"""The bytes of unfinished requests that all connections hold."""
UNREAD_BYTES_MAX: Final = 256 << 20
"""The bytes of responses that wait for all clients to read."""
UNREAD_S_MAX: Final = 30
"""How long a client may read nothing of a response."""
_READ_AHEAD_BYTES: Final = 1 << 16
"""The bytes after which a connection is not read further while a request is under way."""


class Server(Protocol):
    """Define the server that connections belong to; `ends` are the open ones."""

    served: ServedCluster
    ends: set[ServerEnd]

    def catch_up(self) -> None:
        """Bring the cluster up to the present."""
        ...

    def wake(self) -> None:
        """Go on with the cluster, and set the timer for its next event."""
        ...

    def note(self, line: str) -> None:
        """Append a line to the log of the run."""
        ...


class ServerEnd(asyncio.Protocol):
    """Hand a client's requests to its broker one at a time, and send the responses."""

    def __init__(self, server: Server, broker: BrokerId) -> None:
        self._server = server
        self.broker = broker
        """The broker that the client has connected to."""
        self._buffer = bytearray()
        self._transport: asyncio.Transport
        self._connection: Connection | None = None
        self._is_cutting = False
        self._unread: asyncio.TimerHandle | None = None
        """Runs while the client has a response to read that does not fit into the socket."""

    @property
    def held_bytes(self) -> int:
        """Return the bytes of requests that are buffered."""
        return len(self._buffer)

    @property
    def unread_bytes(self) -> int:
        """Return the bytes of responses that the client has not read."""
        return self._transport.get_write_buffer_size()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connect to the broker, unless it is down or has too many connections."""
        assert isinstance(transport, asyncio.Transport), transport
        self._transport = transport
        self._server.catch_up()
        there = sum(each.broker == self.broker for each in self._server.ends)
        if there >= CONNECTION_COUNT_MAX:
            self._server.note(f"broker {self.broker} has {there} connections: one more refused")
        else:
            self._connection = self._server.served.connect(self.broker, self)
        if self._connection is None:
            transport.abort()
        else:
            self._connection.on_idle = self._cut
            self._server.ends.add(self)

    def data_received(self, data: bytes) -> None:
        """Take bytes of the client."""
        if self._connection is None or not self._connection.is_open:
            return
        self._buffer += data
        if (
            len(self._buffer) > _READ_AHEAD_BYTES
            and sum(each.held_bytes for each in self._server.ends) > REQUESTS_BYTES_MAX
        ):
            self._connection.abort(f"clients have begun requests of more than {REQUESTS_BYTES_MAX} bytes together")
            return
        self._server.catch_up()
        self._cut()
        self._server.wake()

    def _cut(self) -> None:
        """Hand buffered requests to the broker while none is under way and no response is unread."""
        connection = self._connection
        if self._is_cutting or connection is None:
            return
        self._is_cutting = True
        while connection.is_idle and self._unread is None:
            frame = connection.next_frame(self._buffer)
            if frame is None:
                break
            connection.receive(frame)
        self._is_cutting = False
        if not connection.is_open:
            return
        if len(self._buffer) > _READ_AHEAD_BYTES and not (connection.is_idle and self._unread is None):
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        """Hand over what the client sent before it closed the connection; nothing after a reset."""
        if self._connection is None:
            return
        if error is not None:
            self._connection.abort()
            return
        self._server.catch_up()
        while (frame := self._connection.next_frame(self._buffer)) is not None:
            self._connection.receive(frame)
        self._connection.close()
        self._server.wake()

    def write(self, frame: bytes) -> None:
        """Send a response; disconnect the client if the unread responses of all clients exceed the limit."""
        self._transport.write(frame)
        if self._unread is not None and sum(each.unread_bytes for each in self._server.ends) > UNREAD_BYTES_MAX:
            assert self._connection is not None
            self._connection.abort(f"clients have not read more than {UNREAD_BYTES_MAX} bytes together")

    def pause_writing(self) -> None:
        """Take no request until the client has read; disconnect it if it reads nothing for `UNREAD_S_MAX`."""
        self._look_again(self.unread_bytes)

    def _look_again(self, unread_bytes: int) -> None:
        self._unread = asyncio.get_running_loop().call_later(UNREAD_S_MAX, self._check_progress, unread_bytes)

    def _check_progress(self, before_bytes: int) -> None:
        if self._connection is not None and self.unread_bytes >= before_bytes:
            self._connection.abort(f"the client has read nothing for {counted(UNREAD_S_MAX, 'second')}")
        else:
            self._look_again(self.unread_bytes)

    def resume_writing(self) -> None:
        """Take requests again once the client has read its responses."""
        self._end_look()
        self._server.catch_up()
        self._cut()
        self._server.wake()

    def _end_look(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def close(self) -> None:
        """Break the connection."""
        self._server.ends.discard(self)
        self._end_look()
        self._buffer.clear()
        self._transport.abort()
