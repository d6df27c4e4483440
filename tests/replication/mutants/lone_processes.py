"""Run one group without a cluster, and see that its processes, its network and its brokers live as they should.

What it decides: a scenario, a protocol and a supervisor, from a seed; what happens is read from the observer's calls.

Constraints: a timer of a process that runs is not late; a frozen process and one that has ended do nothing; who dies is
started again by the supervisor alone, after its time; messages take 1 ms and 2 more on average, and keep their order,
but for commits that are held; entries are stored 3 ms after they were asked for, and another broker coordinates after a
fail-over. Timers of the coordinator are not late either, and few events find nothing to do.

Source: ours, as `replication.groups.alone`.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from broker.error_codes import ErrorCode
from broker.group.classic import HeartbeatRequest, Ticket
from broker.group.consumer import ConsumerGroupHeartbeatRequest
from broker.group.messages import FindCoordinatorResponse, OffsetCommitRequest
from broker.units import DurationMs
from replication.groups.alone import Shape, SingleGroupScenario, seeded_scenario
from replication.groups.alone.processes import Process
from replication.groups.alone.simulation import GroupSimulation, Watcher
from replication.groups.client.messages import Died, Disconnected, PartitionsRevoked, Send, Why
from replication.groups.client.protocols import GroupProtocol
from replication.groups.common.events import Event, EventKind
from tests.replication.mutants.drawing import Draws

STORE_MS: Final = 3
_STREAM: Final = 59
_RESTART_MS: Final = 4_000
_NEVER: Final = 10**9
_EXTRA: Final = (
    *(EventKind.LOSE_ANSWER, EventKind.FREEZE, EventKind.FAILOVER, EventKind.TWIN, EventKind.BOUNCE),
    EventKind.HOLD_COMMITS,
)
_SLOW_MS: Final = 100
"""Longer than any message takes; on average one takes 3 ms."""
_IDLE_ONE_IN: Final = 8
"""The least number of events of which one may be a timer that finds nothing due, as another was set meanwhile."""


def processes_noticed(seed: int) -> str:
    """Return what a run of one group does that it must not, "" if nothing."""
    draws = Draws(seed, _STREAM)
    watch = _Watch(kill_ms=draws.number(20_000, 200_000))
    simulation = GroupSimulation(_scenario(draws, seed), draws.one(tuple(GroupProtocol)), seed)
    simulation.watchers.append(watch)
    told = _network(simulation)
    if not told:
        watch.follow(simulation)
        simulation.run()
        told = watch.counted(simulation)
    return watch.told or told


def _scenario(draws: Draws, seed: int) -> SingleGroupScenario:
    """Return a scenario in which more happens than is drawn elsewhere, and processes die of another with their name."""
    drawn = seeded_scenario(seed, Shape(members=3, partitions=4, minutes=5))
    static = attrs.evolve(drawn.members[0], instance_id="i")
    names = [each.name for each in drawn.members]
    times = [draws.number(10_000, 200_000) for _ in range(6)]
    extra = [
        attrs.evolve(
            drawn.events[0], at_ms=at_ms, kind=kind, for_ms=DurationMs(draws.number(500, 9_000)), target=target
        )
        for at_ms in times
        for kind in (draws.one(_EXTRA),)
        for target in ("" if kind is EventKind.FAILOVER else names[0] if kind is EventKind.TWIN else draws.one(names),)
    ]
    return attrs.evolve(
        drawn,
        members=(static, *drawn.members[1:]),
        events=tuple(sorted((*drawn.events, *extra), key=lambda event: event.at_ms)),
        restart_ms=draws.one((None, DurationMs(_RESTART_MS))),
        records_per_second=5,
    )


def _network(simulation: GroupSimulation) -> str:
    """Return what is wrong with the times that messages take."""
    process = Process("x", None)  # type: ignore[arg-type] # a process of which nothing but its messages is asked.
    for is_out in (True, False):
        times = [simulation._way(process, is_out=is_out) for _ in range(60)]
        if times != sorted(times):
            return f"messages take {times} ms"
    held = [simulation._way(process, is_out=True, extra_ms=1_000) for _ in range(300)]
    if min(held) != 1_001 or not 2 < sum(held) / len(held) - 1_000 < 4:
        return f"messages that are held for 1,000 ms take {sum(held) / len(held)} ms"
    return ""


class _Watch(Watcher):
    """Watch the processes of one run; `told` is what was wrong first."""

    def __init__(self, kill_ms: int) -> None:
        self.told = ""
        self._kill_ms = kill_ms
        """From when on a process dies as its commit arrives, so that the answer finds nobody."""
        self._stored_ms: list[int] = []
        """When what was asked for is stored."""
        self._coordinator, self._is_failing, self._has_died = 0, False, False
        self._restarts: list[tuple[int, str, Process]] = []
        """When a process is to begin after another of its name, and which other."""
        self._known: dict[str, Process] = {}
        self._starting: set[str] = set()
        self._losing: set[str] = set()
        """The processes that are to lose an answer."""
        self._has_told = False
        """Whether a heartbeat has come in this step whose answer may be lost."""

        self._ways: dict[Process, list[Send]] = {}
        """The requests that are on their way from each process, in order, but for commits that are held."""
        self._held_ms: dict[Process, int] = {}
        """Until when the commits of each process are held."""
        self._unheard: dict[tuple[Process, int], int] = {}
        """The responses that are on their way: to whom, and since when."""
        self._answers: list[Any] = []
        """The coordinator's responses to the request that arrives."""
        self._replies: list[tuple[Process, Ticket, Any]] = []
        """What is sent to processes as it arrives."""
        self._step_count = self._idle_count = 0

    def follow(self, simulation: GroupSimulation) -> None:
        """Look at each request as it is sent and as it arrives, and at each timer."""
        send, arrive, reply, hear = simulation._send, simulation._arrive, simulation._reply, simulation._hear
        wake, wake_host = simulation._wake, simulation._wake_host

        def sends(process: Process, message: Send) -> None:
            if not self._is_held(simulation, process, message):
                self._ways.setdefault(process, []).append(message)
            send(process, message)

        def arrives(process: Process, message: Send) -> None:
            way = self._ways.get(process, [])
            held_ms = self._held_ms.get(process, 0)
            if message in way:
                self._expect(simulation, way.pop(0) is message, f"{message} overtakes {way}")
            else:
                is_due = held_ms < simulation.now_ms <= held_ms + _SLOW_MS
                self._expect(simulation, is_due, f"{message} is held until {held_ms}")
            is_wrong = message.broker not in (None, simulation.hosting.coordinator)
            self._answers = []
            is_lost = message.broker is not None and simulation.hosting.service is None
            is_losing, self._replies = process.loses_answer, []
            arrive(process, message)
            is_broken = self._replies[:1] == [(process, message.ticket, Disconnected())]
            self._expect(simulation, is_broken or process.loses_answer == is_losing, f"{message} is answered")
            waits = (process, message.ticket) in simulation._asked.values()
            self._expect(simulation, not waits or not is_lost, f"{message} waits, and nobody coordinates")
            errors = [each for told in self._answers for each in getattr(told, "errors", None) or (told.error,)]
            is_refused = errors != [] and set(errors) == {ErrorCode.NOT_COORDINATOR}
            self._expect(simulation, is_refused or not is_wrong, f"{message.broker} answers {message} by {errors}")

        def replies(process: Process, ticket: Ticket, response: Any) -> None:
            if isinstance(response, FindCoordinatorResponse):
                hosting = simulation.hosting
                none = FindCoordinatorResponse(error=ErrorCode.COORDINATOR_NOT_AVAILABLE)
                wanted = none if hosting.service is None else FindCoordinatorResponse(hosting.coordinator)
                self._expect(simulation, response == wanted, f"found is {response}, and {wanted} is so")
            self._replies.append((process, ticket, response))
            self._unheard[process, int(ticket)] = simulation.now_ms
            reply(process, ticket, response)

        def hears(process: Process, ticket: Ticket, response: Any) -> None:
            is_due = self._unheard.pop((process, int(ticket)), None) is not None and process.is_alive
            self._expect(simulation, is_due, f"{process.name} hears {response}")
            hear(process, ticket, response)

        def wakes(process: Process, at_ms: int) -> None:
            self._idle_count += process.wakes_ms != at_ms
            wake(process, at_ms)

        def wakes_host() -> None:
            next_ms = simulation.hosting.next_ms()
            self._idle_count += next_ms is None or next_ms > simulation.now_ms
            wake_host()

        wrapped = {"_send": sends, "_arrive": arrives, "_reply": replies, "_hear": hears, "_wake": wakes}
        for name, function in {**wrapped, "_wake_host": wakes_host}.items():
            setattr(simulation, name, function)

    def _is_held(self, simulation: GroupSimulation, process: Process, message: Send) -> bool:
        is_commit = isinstance(message.request, OffsetCommitRequest)
        return is_commit and self._held_ms.get(process, 0) > simulation.now_ms

    def counted(self, simulation: GroupSimulation) -> str:
        """Return what is wrong with the count of events, "" if nothing."""
        if simulation.event_count != self._step_count:
            return f"{simulation.event_count} events are counted, and {self._step_count} were seen"
        is_idle = self._idle_count * _IDLE_ONE_IN > self._step_count
        return f"{self._idle_count} of {self._step_count} events find nothing to do" if is_idle else ""

    def _expect(self, simulation: GroupSimulation, holds: bool, text: str) -> None:
        if not holds:
            self.told = self.told or f"at {simulation.now_ms} {text}"

    def noted(self, simulation: GroupSimulation, process: Process, note: Any) -> None:
        """See that who notes something runs, and plan what follows a death."""
        is_end = isinstance(note, PartitionsRevoked) and note.why is Why.CRASHED
        is_awake = process.is_alive and simulation.now_ms >= process.frozen_until_ms
        self._expect(simulation, is_awake or is_end, f"{process.name} is over or stands still, and notes {note}")
        if isinstance(note, Died) and simulation.scenario.restart_ms is not None:
            self._restarts.append((simulation.now_ms + _RESTART_MS, process.name, process))

    def happened(self, simulation: GroupSimulation, event: Event) -> None:
        """Note who may begin now, or later, and who loses an answer."""
        process = simulation.processes.get(event.target)
        if event.kind in (EventKind.START, EventKind.TWIN):
            self._starting.add(event.target + ("+" if event.kind is EventKind.TWIN else ""))
        elif event.kind is EventKind.BOUNCE and process is not None and process.is_alive:
            self._restarts.append((simulation.now_ms + event.for_ms, event.target, process))
        elif event.kind is EventKind.HOLD_COMMITS and process is not None and process.is_alive:
            self._held_ms[process] = simulation.now_ms + event.for_ms
        self._has_died = event.kind is EventKind.FAILOVER
        self._is_failing |= self._has_died

    def asked(self, simulation: GroupSimulation, ticket: Ticket, request: Any) -> None:
        """See that a heartbeat whose answer is to be lost has lost it; let who commits die once."""
        name = getattr(request, "member_id", "")
        sender = next((each for each in simulation.alive() if name and each.client.member_id == name), None)
        if isinstance(request, OffsetCommitRequest) and sender is not None and simulation.now_ms >= self._kill_ms:
            self._kill_ms = _NEVER
            simulation._end(sender)
        says = isinstance(request, ConsumerGroupHeartbeatRequest) and request.owned is not None
        if not says and not isinstance(request, HeartbeatRequest):
            return
        self._has_told = True
        is_kept = sender is not None and sender.loses_answer
        self._expect(simulation, not is_kept, f"the answer to {request} is not lost")

    def answered(self, simulation: GroupSimulation, ticket: Ticket, response: Any) -> None:
        """Note a response."""
        self._answers.append(response)

    def appended(self, simulation: GroupSimulation, entries: object) -> None:
        """Note when something is stored that the coordinator asks for."""
        self._stored_ms.append(simulation.now_ms + STORE_MS)

    def stepped(self, simulation: GroupSimulation) -> None:
        """Look at all processes, and at the coordinator."""
        self._step_count += 1
        for name, process in simulation.processes.items():
            self._look(simulation, name, process)
        for each in [each for each in self._restarts if each[0] < simulation.now_ms]:
            self._restarts.remove(each)
            has_ended = not each[2].is_alive or each[2].client.is_over
            is_there = simulation.processes[each[1]] is not each[2] or not has_ended
            self._expect(simulation, is_there, f"{each[1]} has not begun again, due at {each[0]}")
        losing = {name for name, process in simulation.processes.items() if process.loses_answer}
        gone = {name for name in self._losing - losing if simulation.processes[name] is self._known[name]}
        self._expect(simulation, self._has_told or not gone, f"{gone} have lost the answer to something else")
        self._known = dict(simulation.processes)
        self._losing, self._has_told = losing, False
        self._starting.clear()
        self._look_at_host(simulation)

    def _look(self, simulation: GroupSimulation, name: str, process: Process) -> None:
        """See that a process began for a reason, and that its timer is not late."""
        now_ms, next_ms = simulation.now_ms, process.client.next_ms()
        if self._known.get(name) is not process:
            is_due = any(each[:2] == (now_ms, name) for each in self._restarts)
            self._expect(simulation, is_due or name in self._starting, f"{name} begins")
        if process.is_alive and now_ms > process.frozen_until_ms:
            self._expect(simulation, next_ms is None or next_ms >= now_ms, f"the timer of {name} was due at {next_ms}")
            late = [(ticket, ms) for (each, ticket), ms in self._unheard.items() if each is process]
            late = [each for each in late if each[1] + _SLOW_MS < now_ms]
            self._expect(simulation, not late, f"{name} has not heard the answers {late}")

    def _look_at_host(self, simulation: GroupSimulation) -> None:
        now_ms, hosting = simulation.now_ms, simulation.hosting
        next_ms = hosting.next_ms()
        self._expect(simulation, next_ms is None or next_ms >= now_ms, f"the coordinator's timer was due at {next_ms}")
        self._stored_ms = [each for each in self._stored_ms if each >= now_ms]
        is_sure = now_ms not in self._stored_ms
        text = f"something is being stored: {hosting.is_storing}, due at {self._stored_ms}"
        self._expect(simulation, not is_sure or hosting.is_storing == bool(self._stored_ms), text)
        is_dead = hosting.service is None
        self._expect(simulation, is_dead or not self._has_died, f"{hosting.coordinator} has died, and coordinates")
        self._expect(
            simulation, not self._has_died or not simulation._asked, "requests wait for a broker that has died"
        )
        self._has_died = False
        if not is_dead:
            is_other = hosting.coordinator != self._coordinator
            self._expect(simulation, is_other or not self._is_failing, f"{hosting.coordinator} coordinates again")
            self._is_failing, self._coordinator = False, hosting.coordinator
