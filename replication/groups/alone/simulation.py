"""Simulate one group on a virtual clock: clients, their network, the coordinator, and the events of a scenario.

What it decides: the order of events: by time, and among equal times by when they were planned.

Goals, most important first:
1. The same scenario, protocol and seed give the same run, on any machine.
2. Clients and coordinator know of each other only through messages.

Constraints: messages between a process and a broker keep their order, as on a connection; messages from and to a
process that has ended are dropped. A frozen process runs its due timers when it goes on, then takes its messages.

How: a heap of (time, number, action). After each event the watchers are called: ledger and checker.

Left out: broken networks, several groups; the replicated cluster (package replication) has these.

Source: ours; discrete-event simulation.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from functools import partial
from typing import Final

from broker.draws import exponential
from broker.entropy import SplitMix64, derive
from broker.error_codes import ErrorCode
from broker.group.classic import HeartbeatRequest, JoinGroupResponse, Ticket
from broker.group.consumer import ConsumerGroupHeartbeatRequest
from broker.group.members import InstanceId
from broker.group.messages import FindCoordinatorRequest, FindCoordinatorResponse, OffsetCommitRequest
from broker.group.service import GroupEntry
from broker.group.service import Request as ServiceRequest
from broker.group.service import Response as ServiceResponse
from broker.ids import PartitionId, TopicPartition
from broker.releases import NEWEST, Release
from broker.units import DurationMs, TimeMs
from replication.groups.alone.hosting import Hosting
from replication.groups.alone.processes import Process, Records
from replication.groups.alone.scenario import SingleGroupScenario
from replication.groups.client.messages import (
    Died,
    Disconnected,
    Note,
    Output,
    PartitionsRevoked,
    Response,
    Send,
    TopicMetadataRequest,
    TopicMetadataResponse,
    Why,
)
from replication.groups.client.options import ClientSpec
from replication.groups.client.protocols import GroupProtocol, new_client
from replication.groups.common.coordinator import service_options
from replication.groups.common.events import Event, EventKind

GROUP_ID: Final = "group"
_NETWORK_STREAM: Final = 1
_COORDINATOR_STREAM: Final = 2
_CLIENT_STREAM: Final = 3
_WAY_MS_MEAN: Final = 2
_TWIN: Final = "+"


class Watcher:
    """Observe a simulation; a subclass overrides the calls that it needs."""

    def noted(self, simulation: GroupSimulation, process: Process, note: Note) -> None:
        """Observe a note of a client."""

    def happened(self, simulation: GroupSimulation, event: Event) -> None:
        """Observe an event of the scenario."""

    def asked(self, simulation: GroupSimulation, ticket: Ticket, request: ServiceRequest) -> None:
        """Observe a request that has reached the coordinator's broker, before the broker handles it."""

    def answered(self, simulation: GroupSimulation, ticket: Ticket, response: ServiceResponse) -> None:
        """Observe a response of the coordinator."""

    def appended(self, simulation: GroupSimulation, entries: tuple[GroupEntry, ...]) -> None:
        """Observe the entries that the coordinator asks to store."""

    def stored(self, simulation: GroupSimulation, entries: tuple[GroupEntry, ...]) -> None:
        """Observe stored entries, before the coordinator learns that they are stored."""

    def stepped(self, simulation: GroupSimulation) -> None:
        """Observe clients and coordinator after an event."""


class GroupSimulation:
    """Simulate one scenario with one protocol and a coordinator of one release."""

    def __init__(
        self, scenario: SingleGroupScenario, protocol: GroupProtocol, seed: int, release: Release = NEWEST
    ) -> None:
        scenario.check()
        self.scenario = scenario
        self.protocol = protocol
        self.now_ms = TimeMs(0)
        self.event_count = 0
        self.watchers: list[Watcher] = []
        self.processes: dict[str, Process] = {}
        self.topics: dict[str, int] = {}
        self.records = Records(scenario.records_per_second)
        self._seed = seed
        self._members = {member.name: member for member in scenario.members}
        """By the name of a process: a twin's is its member's with a mark behind it."""
        self._agenda: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        self._asked: dict[Ticket, tuple[Process, Ticket]] = {}
        self._network = SplitMix64(derive(seed, _NETWORK_STREAM))
        for topic, count in scenario.topics:
            self._grow(topic, count)
        options = service_options(
            scenario.server_assignor(protocol),
            self.topics,
            derive(seed, _COORDINATOR_STREAM),
            offsets_retention_ms=scenario.offsets_retention_ms,
            assignment_interval_ms=scenario.assignment_interval_ms,
            release=release,
        )
        entropy = SplitMix64(derive(seed, _COORDINATOR_STREAM))
        self.hosting = Hosting(options, entropy, self)
        self._host_wakes_ms: int | None = None

    def run(self) -> None:
        """Run all events up to the end of the scenario."""
        for event in self.scenario.events:
            self._at(event.at_ms, partial(self._happen, event))
        while self._agenda and self._agenda[0][0] <= self.scenario.duration_ms:
            at_ms, _, action = heapq.heappop(self._agenda)
            assert at_ms >= self.now_ms, (at_ms, self.now_ms)
            self.now_ms = TimeMs(at_ms)
            action()
            self.event_count += 1
            self._await_host()
            for watcher in self.watchers:
                watcher.stepped(self)
        self.now_ms = TimeMs(self.scenario.duration_ms)

    def alive(self) -> list[Process]:
        """Return the running processes in order of name."""
        return [process for _, process in sorted(self.processes.items()) if process.is_alive]

    # What the brokers ask of their surroundings.

    def later(self, delay_ms: DurationMs, action: Callable[[TimeMs], None]) -> None:
        """Call `action` with the time, in ms, after a delay."""
        self._at(self.now_ms + delay_ms, lambda: action(self.now_ms))

    def tell(self, ticket: Ticket, response: ServiceResponse) -> None:
        """Send a response to the process that sent the request, unless its connection is gone."""
        for watcher in self.watchers:
            watcher.answered(self, ticket, response)
        self._answer(ticket, response)

    def appended(self, entries: tuple[GroupEntry, ...]) -> None:
        """Pass the entries that the coordinator asks to store to the watchers."""
        for watcher in self.watchers:
            watcher.appended(self, entries)

    def stored(self, entries: tuple[GroupEntry, ...]) -> None:
        """Pass stored entries to the watchers."""
        for watcher in self.watchers:
            watcher.stored(self, entries)

    # The clock.

    def _at(self, at_ms: int, action: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._agenda, (max(at_ms, self.now_ms), self._count, action))

    def _await_host(self) -> None:
        next_ms = self.hosting.next_ms()
        if next_ms is not None and (self._host_wakes_ms is None or next_ms < self._host_wakes_ms):
            self._host_wakes_ms = next_ms
            self._at(next_ms, self._wake_host)

    def _wake_host(self) -> None:
        self._host_wakes_ms = None
        self.hosting.advance(self.now_ms)

    # Clients.

    def _start(self, name: str) -> None:
        member = self._members[name]
        spec = ClientSpec(
            name=name,
            group_id=GROUP_ID,
            topics=member.topics,
            assignors=self.scenario.client_assignors(self.protocol),
            instance_id=None if member.instance_id is None else InstanceId(member.instance_id),
            rack=member.rack,
            revoke_ms=member.revoke_ms,
            remembers_partitions=member.remembers_partitions,
            options=member.options(self.scenario.client),
        )
        entropy = SplitMix64(derive(self._seed, _CLIENT_STREAM, self._count))
        client = new_client(spec, self.protocol, self.records, entropy)
        process = self.processes[name] = Process(name, client)
        self._take(process, client.start(self.now_ms))

    def _take(self, process: Process, outputs: tuple[Output, ...]) -> None:
        """Carry out a client's outputs, and plan its next timer."""
        for output in outputs:
            if isinstance(output, Send):
                self._send(process, output)
            else:
                for watcher in self.watchers:
                    watcher.noted(self, process, output)
                if isinstance(output, Died) and self.scenario.restart_ms is not None:
                    self._at(self.now_ms + self.scenario.restart_ms, partial(self._start_if_gone, process.name))
        if process.client.is_over:
            process.is_alive = False
        self._await(process)

    def _await(self, process: Process) -> None:
        next_ms = process.client.next_ms()
        if next_ms is not None and (process.wakes_ms is None or next_ms < process.wakes_ms):
            process.wakes_ms = next_ms
            self._at(next_ms, partial(self._wake, process, next_ms))

    def _wake(self, process: Process, at_ms: int) -> None:
        if process.wakes_ms == at_ms:
            process.wakes_ms = None
            self._when_awake(process, lambda: self._take(process, process.client.advance(self.now_ms)))

    def _when_awake(self, process: Process, action: Callable[[], None]) -> None:
        """Run an action of a process, later if it is frozen, never if it has ended."""
        if not process.is_alive:
            return
        if self.now_ms < process.frozen_until_ms:
            process.inbox.append(action)
        else:
            action()

    def _thaw(self, process: Process) -> None:
        if not process.is_alive or self.now_ms < process.frozen_until_ms:
            return
        self._take(process, process.client.advance(self.now_ms))
        inbox, process.inbox = process.inbox, []
        for action in inbox:
            self._when_awake(process, action)

    # The network.

    def _way(self, process: Process, *, is_out: bool, extra_ms: int = 0) -> int:
        """Return the arrival time of a message sent now: not before the message sent before it."""
        at_ms = self.now_ms + extra_ms + 1 + exponential(self._network, _WAY_MS_MEAN)
        if extra_ms == 0:
            at_ms = process.clear_ms[is_out] = max(at_ms, process.clear_ms[is_out])
        return at_ms

    def _send(self, process: Process, send: Send) -> None:
        extra_ms = 0
        if isinstance(send.request, OffsetCommitRequest):
            extra_ms = max(process.commits_held_until_ms - self.now_ms, 0)
        at_ms = self._way(process, is_out=True, extra_ms=extra_ms)
        self._at(at_ms, partial(self._arrive, process, send))

    def _arrive(self, process: Process, send: Send) -> None:
        request = send.request
        if isinstance(request, FindCoordinatorRequest):
            self._reply(process, send.ticket, self._found())
        elif isinstance(request, TopicMetadataRequest):
            known = {topic: self.topics[topic] for topic in request.topics if topic in self.topics}
            self._reply(process, send.ticket, TopicMetadataResponse(known))
        else:
            assert send.broker is not None
            ticket = Ticket(self._count)
            self._count += 1
            self._asked[ticket] = (process, send.ticket)
            if process.loses_answer and _tells(request):
                process.loses_answer = False
                self._answer(ticket, Disconnected())
            for watcher in self.watchers:
                watcher.asked(self, ticket, request)
            if not self.hosting.handle(send.broker, ticket, request, self.now_ms):
                self._answer(ticket, Disconnected())

    def _found(self) -> FindCoordinatorResponse:
        if self.hosting.service is None:
            return FindCoordinatorResponse(error=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return FindCoordinatorResponse(self.hosting.coordinator)

    def _answer(self, ticket: Ticket, response: Response) -> None:
        """Send a response, or the end of the connection, to the process that sent a request and still waits."""
        asked = self._asked.pop(ticket, None)
        if asked is not None:
            process, own = asked
            self._reply(process, own, response)

    def _reply(self, process: Process, ticket: Ticket, response: Response) -> None:
        at_ms = self._way(process, is_out=False)
        self._at(at_ms, lambda: self._when_awake(process, lambda: self._hear(process, ticket, response)))

    def _hear(self, process: Process, ticket: Ticket, response: Response) -> None:
        if process.dies_leading and isinstance(response, JoinGroupResponse) and response.members:
            self._end(process)
        else:
            self._take(process, process.client.handle(ticket, response, self.now_ms))

    # The scenario.

    def _grow(self, topic: str, count: int) -> None:
        from_count = self.topics.get(topic, 0)
        self.topics[topic] = max(count, from_count)
        for number in range(from_count, count):
            self.records.made_ms[TopicPartition(topic, PartitionId(number))] = self.now_ms

    def _happen(self, event: Event) -> None:
        for watcher in self.watchers:
            watcher.happened(self, event)
        match event.kind:
            case EventKind.ADD_PARTITIONS:
                self._grow(event.target, event.count)
            case EventKind.FAILOVER:
                self._fail_over(event.for_ms)
            case EventKind.START:
                self._start_if_gone(event.target)
            case EventKind.TWIN:
                twin = event.target + _TWIN
                self._members[twin] = self._members[event.target]
                self._start(twin)
            case _:
                process = self.processes.get(event.target)
                if process is not None and process.is_alive:
                    self._befall(process, event)

    def _start_if_gone(self, name: str) -> None:
        process = self.processes.get(name)
        if process is None or not process.is_alive:
            self._start(name)

    def _befall(self, process: Process, event: Event) -> None:
        match event.kind:
            case EventKind.CLOSE | EventKind.BOUNCE:
                self._when_awake(process, lambda: self._take(process, process.client.close(self.now_ms)))
                if event.kind is EventKind.BOUNCE:
                    self._at(self.now_ms + event.for_ms, partial(self._start_if_gone, process.name))
            case EventKind.CRASH:
                self._end(process)
            case EventKind.STALL:
                self._when_awake(process, lambda: self._take(process, process.client.stall(event.for_ms, self.now_ms)))
            case EventKind.FREEZE:
                process.frozen_until_ms = self.now_ms + event.for_ms
                self._at(process.frozen_until_ms, partial(self._thaw, process))
            case EventKind.HOLD_COMMITS:
                process.commits_held_until_ms = self.now_ms + event.for_ms
            case EventKind.LOSE_ANSWER:
                process.loses_answer = True
            case EventKind.CRASH_LEADING:
                process.dies_leading = True

    def _end(self, process: Process) -> None:
        process.is_alive = False
        owned = process.client.subscriptions.owned
        if owned:
            for watcher in self.watchers:
                watcher.noted(self, process, PartitionsRevoked(owned, Why.CRASHED))

    def _fail_over(self, for_ms: DurationMs) -> None:
        """Kill the coordinator: its connections break, and the next one takes over after `for_ms`."""
        self.hosting.die()
        for ticket in sorted(self._asked):
            self._answer(ticket, Disconnected())
        self.later(for_ms, self.hosting.take_over)


def _tells(request: ServiceRequest) -> bool:
    """Return whether a request is a heartbeat; in a consumer group, one that reports the owned partitions."""
    return isinstance(request, HeartbeatRequest) or (
        isinstance(request, ConsumerGroupHeartbeatRequest) and request.owned is not None
    )
