"""Model a broker's request path, from socket to log and back, as discrete events (Reactor pattern).

An acceptor deals connections to the processors in turn. A processor reads a request, mutes its socket and puts the
request into the one queue all handlers share; while that queue is full it stands still. A handler works on the request;
then it is answered, or waits in the purgatory. The response goes to the queue of the processor that read it; responses
come before reading. Sent, it unmutes the socket. Left out: TLS, quotas, several listeners, bytes.

Source: kafka.network.SocketServer, RequestChannel, kafka.server.KafkaRequestHandlerPool, DelayedProduce and
DelayedFetch, 4.0.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from itertools import pairwise
from typing import Final, TypeAlias

import attrs

from broker.draws import exponential
from broker.entropy import RandomSource
from broker.requests.measures import PHASES, KindReport, Level, PathReport, Quantiles
from broker.requests.options import SECOND_US, Load, RequestKind, RequestPathOptions, Waits
from broker.requests.purgatory import Purgatory
from broker.units import TimeMs

MILLISECOND_US: Final = 1000

Action: TypeAlias = Callable[[], None]


@attrs.define(eq=False)
class _Connection:
    processor: _Processor
    partition: int
    is_muted: bool = False
    """Whether a request is being worked on, so that the next is not read (KafkaChannel.ChannelMuteState)."""
    waiting: deque[_Request] = attrs.field(factory=deque)
    fetched: int = 0
    """How much of its partition this connection has fetched."""


@attrs.define(eq=False)
class _Request:
    kind: RequestKind
    connection: _Connection
    arrived_us: int
    read_us: int = 0
    taken_us: int = 0
    handled_us: int = 0
    completed_us: int = 0
    sending_us: int = 0
    wanted: int = 0
    """How far its partition must be committed before it can be answered."""
    has_expired: bool = False

    def phases_us(self, sent_us: int) -> tuple[int, ...]:
        """Return the request's time in each phase, in the order of PHASES, in microseconds."""
        marks = (self.arrived_us, self.read_us, self.taken_us, self.handled_us, self.completed_us, self.sending_us)
        steps = tuple(later - earlier for earlier, later in pairwise((*marks, sent_us)))
        return (*steps, sent_us - self.read_us)


@attrs.define(eq=False)
class _Processor:
    readable: deque[_Connection] = attrs.field(factory=deque)
    responses: deque[_Request] = attrs.field(factory=deque)
    is_busy: bool = False
    stuck: _Request | None = None


@attrs.define(eq=False)
class _Delayed:
    """A request that waits in the purgatory."""

    path: RequestPath
    request: _Request

    def can_complete(self) -> bool:
        return self.path.committed[self.request.connection.partition] >= self.request.wanted

    def on_complete(self, *, expired: bool) -> None:
        self.request.has_expired = expired
        self.path.respond(self.request)


class RequestPath:
    """Simulate one broker under one load; `run` simulates from start to end."""

    def __init__(self, options: RequestPathOptions, load: Load, entropy: RandomSource) -> None:
        self.options = options
        self.load = load
        self.entropy = entropy
        self.now_us = 0
        self.agenda: list[tuple[int, int, Action]] = []
        self.action_count = 0
        self.processors = [_Processor() for _ in range(options.network_thread_count)]
        self.connections = [
            _Connection(self.processors[index % len(self.processors)], index % load.partition_count)
            for index in range(load.connection_count)
        ]
        self.kinds = tuple(kind for kind in load.kinds for _ in range(kind.weight))
        self.queue: deque[_Request] = deque()
        self.stuck: deque[_Processor] = deque()
        self.free_handlers = list(range(options.io_thread_count))
        self.appended = [0] * load.partition_count
        self.committed = [0] * load.partition_count
        self.purgatory: Purgatory[int] = Purgatory(start_ms=TimeMs(0))
        self.arrived_count = 0
        self.phases_us: dict[str, list[tuple[int, ...]]] = {kind.name: [] for kind in load.kinds}
        self.expired: dict[str, int] = {kind.name: 0 for kind in load.kinds}
        self.busy_handlers, self.busy_processors, self.stuck_processors = Level(), Level(), Level()
        self.queued, self.delayed, self.response_queue_max = Level(), Level(), 0

    def run(self) -> PathReport:
        """Simulate the load and return the measures; count unanswered requests only as received."""
        end_us = self.load.duration_ms * MILLISECOND_US
        self._schedule_arrival()
        while self.agenda:
            at_us = self.agenda[0][0]
            stop_ms = self.purgatory.next_stop_ms()
            if stop_ms is not None and stop_ms * MILLISECOND_US <= at_us:
                at_us = stop_ms * MILLISECOND_US
            if at_us > end_us:
                break
            assert at_us >= self.now_us
            self.now_us = at_us
            if stop_ms is not None and stop_ms * MILLISECOND_US <= at_us:
                self.purgatory.advance(stop_ms)
                self._note_delayed()
            else:
                heapq.heappop(self.agenda)[2]()
        return self._report(end_us)

    def _after(self, delay_us: int, action: Action) -> None:
        self.action_count += 1
        heapq.heappush(self.agenda, (self.now_us + delay_us, self.action_count, action))

    def _schedule_arrival(self) -> None:
        self._after(exponential(self.entropy, SECOND_US) // self.load.requests_per_second, self._arrive)

    def _arrive(self) -> None:
        connection = self.connections[self.entropy.next_int_bound(len(self.connections))]
        kind = self.kinds[self.entropy.next_int_bound(len(self.kinds))]
        self.arrived_count += 1
        connection.waiting.append(_Request(kind, connection, self.now_us))
        if not connection.is_muted and len(connection.waiting) == 1:
            connection.processor.readable.append(connection)
            self._work(connection.processor)
        self._schedule_arrival()

    def _work(self, processor: _Processor) -> None:
        """Give an idle processor its next work: a response to send if there is one, else a request to read."""
        if processor.is_busy:
            return
        # Kafka's processor handles new responses before it polls for requests.
        if processor.responses:
            request = processor.responses.popleft()
            request.sending_us = self.now_us
            self._occupy(processor, request.kind.write_us, lambda: self._sent(processor, request))
        elif processor.readable:
            request = processor.readable.popleft().waiting[0]
            self._occupy(processor, request.kind.read_us, lambda: self._read(processor, request))

    def _occupy(self, processor: _Processor, cost_us: int, action: Action) -> None:
        processor.is_busy = True
        self.busy_processors.change(1, self.now_us)
        self._after(cost_us, action)

    def _release(self, processor: _Processor) -> None:
        processor.is_busy = False
        self.busy_processors.change(-1, self.now_us)
        self._work(processor)

    def _read(self, processor: _Processor, request: _Request) -> None:
        request.read_us = self.now_us
        request.connection.waiting.popleft()
        request.connection.is_muted = True
        if len(self.queue) >= self.options.queued_requests_max:
            # RequestChannel.sendRequest blocks: while the queue is full, this network thread serves none of its
            # connections.
            processor.stuck = request
            self.stuck.append(processor)
            self.stuck_processors.change(1, self.now_us)
            return
        self._enqueue(request)
        self._release(processor)

    def _enqueue(self, request: _Request) -> None:
        self.queue.append(request)
        self.queued.change(1, self.now_us)
        self._hand_out()

    def _hand_out(self) -> None:
        """Give the queue's first request to a free handler, and the free slot to the processor blocked longest."""
        while self.queue and self.free_handlers:
            handler = heapq.heappop(self.free_handlers)
            request = self.queue.popleft()
            self.queued.change(-1, self.now_us)
            self.busy_handlers.change(1, self.now_us)
            request.taken_us = self.now_us
            slowness = self.load.slow_factor if handler < self.load.slow_handler_count else 1
            cost_us = exponential(self.entropy, request.kind.handle_us * slowness)
            self._after(cost_us, lambda handler=handler, request=request: self._handled(handler, request))  # type: ignore[misc]  # mypy does not infer lambda defaults.
            # The queue has room for one request again. It belongs to whoever waited longest.
            if self.stuck:
                self._unstick(self.stuck.popleft())

    def _unstick(self, processor: _Processor) -> None:
        request, processor.stuck = processor.stuck, None
        assert request is not None
        self.stuck_processors.change(-1, self.now_us)
        self.queue.append(request)
        self.queued.change(1, self.now_us)
        self._release(processor)

    def _handled(self, handler: int, request: _Request) -> None:
        request.handled_us = self.now_us
        partition = request.connection.partition
        match request.kind.waits:
            case Waits.NOTHING:
                self.respond(request)
            case Waits.COMMIT:
                self.appended[partition] += 1
                offset = request.wanted = self.appended[partition]
                self._after(
                    exponential(self.entropy, self.load.replication_us), lambda: self._commit(partition, offset)
                )
                self._delay(request, partition)
            case Waits.DATA:
                request.wanted = request.connection.fetched + 1
                self._delay(request, partition)
        heapq.heappush(self.free_handlers, handler)
        self.busy_handlers.change(-1, self.now_us)
        self._hand_out()

    def _delay(self, request: _Request, partition: int) -> None:
        now_ms, delay_ms = TimeMs(self.now_us // MILLISECOND_US), request.kind.wait_ms_max
        self.purgatory.try_complete_else_watch(_Delayed(self, request), (partition,), now_ms=now_ms, delay_ms=delay_ms)
        self._note_delayed()

    def _commit(self, partition: int, offset: int) -> None:
        """Advance the high watermark to `offset`; an earlier one may be reported later, as fetches overtake."""
        if offset > self.committed[partition]:
            self.committed[partition] = offset
            self.purgatory.check_and_complete(partition)
            self._note_delayed()

    def _note_delayed(self) -> None:
        self.delayed.change(self.purgatory.delayed_count - self.delayed.value, self.now_us)

    def respond(self, request: _Request) -> None:
        """Put the response into the queue of the processor that read the request."""
        connection = request.connection
        request.completed_us = self.now_us
        if request.kind.waits is Waits.DATA:
            connection.fetched = max(connection.fetched, self.committed[connection.partition])
        connection.processor.responses.append(request)
        self.response_queue_max = max(self.response_queue_max, len(connection.processor.responses))
        self._work(connection.processor)

    def _sent(self, processor: _Processor, request: _Request) -> None:
        connection = request.connection
        connection.is_muted = False
        self.phases_us[request.kind.name].append(request.phases_us(self.now_us))
        self.expired[request.kind.name] += request.has_expired
        if connection.waiting:
            processor.readable.append(connection)
        self._release(processor)

    def _report(self, end_us: int) -> PathReport:
        kinds = [_kind_report(name, rows, self.expired[name]) for name, rows in self.phases_us.items()]
        every = [row for rows in self.phases_us.values() for row in rows]
        processors, handlers = len(self.processors), self.options.io_thread_count
        return PathReport(
            requests_per_second=self.load.requests_per_second,
            arrived_count=self.arrived_count,
            answered_count=len(every),
            handler_idle_ratio=1 - self.busy_handlers.mean(end_us) / handlers,
            processor_idle_ratio=1 - self.busy_processors.mean(end_us) / processors,
            blocked_ratio=self.stuck_processors.mean(end_us) / processors,
            request_queue_mean=self.queued.mean(end_us),
            request_queue_max=self.queued.largest,
            response_queue_max=self.response_queue_max,
            purgatory_max=self.delayed.largest,
            kinds=tuple(kinds),
            all_kinds=_kind_report("all", every, sum(self.expired.values())),
        )


def _kind_report(name: str, rows: list[tuple[int, ...]], expired_count: int) -> KindReport:
    columns = zip(*rows, strict=True) if rows else ([],) * len(PHASES)
    return KindReport(name=name, phases=tuple(map(Quantiles.of, columns)), expired_count=expired_count)
