"""Carry one client's connection to one run of one broker: frames in, frames out, in order.

One request is under way at a time. The connection breaks when the broker's process ends, when the client sends what no
broker reads, and when a response is dropped on purpose. What a client sent before it closed is carried out, up to the
first request whose response it can no longer take.

Source: Kafka core SocketServer and RequestChannel, clients Selector.maybeReadFromClosingChannel and send, 4.4.0;
KIP-511 for the answer to an unknown version of ApiVersions.
"""

from __future__ import annotations

import enum
from collections import Counter, deque
from collections.abc import Callable
from typing import Final, Protocol

import attrs

from broker.error_codes import ErrorCode
from broker.errors import BrokersideError
from broker.units import TimeMs
from replication.roles.messages import Address, Message, NodeId
from replication.roles.outbox import Outbox
from replication.simulation.cluster import Cluster
from replication.testing.entities import (
    API_VERSIONS,
    FRAME_BYTES_MAX,
    Request,
    api_and_version,
    read_request,
    write_response,
)
from replication.testing.gateway import ClientRequest, ClientResponse
from replication.testing.served import BY_API, advertised

_SIZE_BYTES: Final = 4


class Side(enum.Enum):
    """Name what of a request is dropped."""

    REQUEST = "request"
    RESPONSE = "response"


class Sink(Protocol):
    """Define where a connection's responses go."""

    def write(self, frame: bytes) -> None:
        """Send a frame to the client."""
        ...

    def close(self) -> None:
        """Break the connection."""
        ...


@attrs.define
class Interference:
    """Hold what is done to the connections of a cluster on purpose."""

    drops: Counter[tuple[str, Side]] = attrs.field(factory=Counter)
    """How many requests or responses of an API are still dropped; each breaks its connection."""
    delay_ms: int = 0
    """How long each response is held back."""

    def drops_next(self, request: Request, side: Side) -> bool:
        """Return whether a request or its response is dropped, and count it."""
        key = BY_API[request.api].name, side
        if self.drops[key] <= 0:
            return False
        self.drops[key] -= 1
        return True


class Connection:
    """Hold a client's connection to a broker; a client of the simulated cluster."""

    def __init__(
        self, cluster: Cluster, receiver: Address, sink: Sink, interference: Interference, number: Callable[[], int]
    ) -> None:
        self.receiver = receiver
        """The run of the broker's process that was connected to."""
        self.is_open = True
        """Whether requests are carried out; also after `close`, while some are left."""
        self._is_closing = False
        self.on_close: Callable[[], object] = _do_nothing
        """Called when the connection is over."""
        self.on_idle: Callable[[], object] = _do_nothing
        """Called when every request has been answered."""
        self.request_count = 0
        self._cluster = cluster
        self._sink = sink
        self._interference = interference
        self._next_number = number
        self._queue: deque[bytes] = deque()
        self._under_way: tuple[int, Request] | None = None
        self.node: NodeId = cluster.connect(lambda node: self)

    def begin(self, out: Outbox) -> None:
        """Do nothing: the client speaks first."""

    @property
    def is_idle(self) -> bool:
        """Return whether no request is queued or under way, so that the client's next one may be handed over."""
        return self.is_open and self._under_way is None and not self._queue

    def next_frame(self, buffer: bytearray) -> bytes | None:
        """Take the next complete frame from `buffer`, else return None; an invalid size closes the connection."""
        if len(buffer) < _SIZE_BYTES:
            return None
        size_bytes = int.from_bytes(buffer[:_SIZE_BYTES], "big", signed=True)
        if not 0 <= size_bytes <= FRAME_BYTES_MAX:
            self.abort(f"a frame of {size_bytes} bytes; allowed are 0 to {FRAME_BYTES_MAX}")
            return None
        end = _SIZE_BYTES + size_bytes
        if len(buffer) < end:
            return None
        frame = bytes(buffer[_SIZE_BYTES:end])
        del buffer[:end]
        return frame

    def receive(self, frame: bytes) -> None:
        """Take a request from the client, without its length; call after the cluster has been advanced to now."""
        self._queue.append(frame)
        self._go_on()

    def handle(self, message: Message, now_ms: TimeMs, out: Outbox) -> None:
        """Take a response from the broker."""
        if not isinstance(message, ClientResponse) or self._under_way is None or not self.is_open:
            return
        number, request = self._under_way
        if message.number != number:
            return
        if message.ends_connection:
            self.abort("a write with acks=0 was refused")
        elif self._interference.drops_next(request, Side.RESPONSE):
            self.abort("a response was dropped")
        elif self._interference.delay_ms:
            self._cluster.at(now_ms + self._interference.delay_ms, lambda: self._finish(request, message))
        else:
            self._finish(request, message)

    def close(self) -> None:
        """Take the client's end of the connection: the requests that it has sent are still carried out."""
        self._is_closing = True
        self._go_on()

    def abort(self, why: str = "") -> None:
        """Break the connection; a reason is written to the log of the run."""
        if self.is_open:
            self.is_open = False
            self._cluster.disconnect(self.node)
            self.on_close()
            self._sink.close()
            if why:
                self._cluster.trace.line(self._cluster.now_ms, f"a connection to broker {self.receiver.node}: {why}")

    def _finish(self, request: Request, response: ClientResponse) -> None:
        if not self.is_open:
            return
        if response.values is not None:
            if self._is_closing:
                self.abort()
                return
            self._sink.write(write_response(request, response.values))
            for note in response.notes:
                note()
        self._under_way = None
        self._go_on()

    def _go_on(self) -> None:
        while self.is_open and self._queue and self._under_way is None:
            self._take(self._queue.popleft())
        if self.is_idle and self._is_closing:
            self.abort()
        elif self.is_idle:
            self.on_idle()

    def _take(self, frame: bytes) -> None:
        self.request_count += 1
        try:
            api, version = api_and_version(frame)
            served = BY_API.get(api)
            if api == API_VERSIONS and served is not None and version > served.most:
                correlation_id = int.from_bytes(frame[4:8], "big", signed=True)
                asked = Request(api=api, version=0, correlation_id=correlation_id, client_id="", body=None)
                self._sink.write(write_response(asked, advertised(ErrorCode.UNSUPPORTED_VERSION)))
                return
            if served is None or not served.least <= version <= served.most:
                self.abort(f"request {api} of version {version} is not served")
                return
            request = read_request(frame)
        except BrokersideError as error:
            self.abort(str(error))
            return
        if self._interference.drops_next(request, Side.REQUEST):
            self.abort("a request was dropped")
            return
        number = self._next_number()
        self._under_way = number, request
        self._cluster.send(self.node, self.receiver, ClientRequest(number, request))


def _do_nothing() -> None:
    pass
