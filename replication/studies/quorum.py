"""Run a log on a majority quorum under the failures of a study: a quorum of `factor` voters for each partition.

A record is committed once a majority has flushed it, from the leader's first record on. A leader that stops, or has no
majority any more, is followed by the running voter with the longest log, once the fetch timeout and a drawn backoff
have passed. A voter flushes before it answers; one that has lost its disk does not count until it has caught up again.
A committed record that an election cuts although no disk was lost is a finding.

Source: Ongaro, Ousterhout, In Search of an Understandable Consensus Algorithm (2014); KIP-595, KIP-853;
controller.quorum.fetch.timeout.ms 2000 and controller.quorum.election.backoff.max.ms 1000 of QuorumConfig, 4.4.0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from typing import Final

import attrs

from broker.entropy import SplitMix64, derive
from replication.explore.quorum_model import has_majority
from replication.simulation.clients import DELIVERY_MS_MAX, RETRY_MS
from replication.simulation.fault import Fault
from replication.simulation.options import FaultKind, NetworkOptions
from replication.studies.isr_run import duration_of, failures_of
from replication.studies.parameters import SAMPLE_MS, Availability, Measures, Parameters

NOBODY: Final = -1
FETCH_TIMEOUT_MS: Final = 2_000
ELECTION_BACKOFF_MS_MAX: Final = 1_000
HEAL_MS: Final = 60_000
BEGIN_MS: Final = 2_000
ANSWER_MS_MAX: Final = 7_000
"""The time within which a leader must answer, as in the simulation: produce_ms_max and answer_ms_max."""
_STREAM: Final = 41
_DELAY_MS_MAX: Final = NetworkOptions().delay_ms_max


@attrs.define(eq=False)
class Write:
    """Hold one write; `latency_ms` is -1 until it is acknowledged, `tries` is -1 once it is over."""

    value: int
    partition: int
    sent_ms: int
    latency_ms: int = -1
    tries: int = 0


class Machines:
    """Hold the clock, the scheduled actions, and which voters run; `incarnation` counts the ends of each."""

    def __init__(self, count: int, entropy: SplitMix64) -> None:
        self.now_ms = 0
        self.is_up = [True] * count
        self.incarnation = [0] * count
        self.message_count = 0
        self.loss_count = 0
        self._entropy = entropy
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._asked = 0

    def drawn(self, most: int) -> int:
        """Return a whole number from 0 to below `most`."""
        return self._entropy.next_int_bound(most)

    def at(self, at_ms: int, action: Callable[[], None]) -> None:
        """Schedule an action."""
        self._asked += 1
        heappush(self._heap, (at_ms, self._asked, action))

    def send(self, action: Callable[[], None], message_count: int = 1) -> None:
        """Run an action after a number of messages in succession, each with a drawn delay."""
        self.message_count += message_count
        delay_ms = sum(1 + self.drawn(_DELAY_MS_MAX) for _ in range(message_count))
        self.at(self.now_ms + delay_ms, action)

    def run_until(self, end_ms: int) -> None:
        """Run all actions up to and including `end_ms`."""
        while self._heap and self._heap[0][0] <= end_ms:
            self.now_ms, _, action = heappop(self._heap)
            action()


class PartitionQuorum:
    """Hold the log of one partition, and how many of its first records each voter has flushed.

    `values` is the leader's log, without a leader that of the last one; the logs of all voters are beginnings of it.
    """

    def __init__(self, machines: Machines) -> None:
        self.leader = NOBODY
        self.values: list[int] = []
        self.held = [0] * len(machines.is_up)
        self.is_counted = [True] * len(machines.is_up)
        self.high_watermark = 0
        self.election_count = 0
        self.broken = ""
        self._machines = machines
        self._epoch = 0
        self._first_of_epoch = 0
        self._offsets: dict[int, int] = {}
        self._waiting: dict[int, Callable[[], None]] = {}

    def has_majority(self) -> bool:
        """Return whether a majority of the voters run and count."""
        count = sum(map(min, self._machines.is_up, self.is_counted))
        return has_majority(count, len(self.held))

    def stopped(self, voter: int, *, loses_disk: bool) -> None:
        """Note that a voter has ended, and elect another leader later if it led, or the leader has no majority left."""
        if voter == self.leader:
            self.held[voter] = len(self.values)
        if loses_disk:
            self.held[voter], self.is_counted[voter] = 0, False
        if self.leader != NOBODY and (voter == self.leader or not self.has_majority()):
            self.held[self.leader] = self.held[self.leader] if voter == self.leader else len(self.values)
            self.leader = NOBODY
            self._epoch += 1
            self.elect_later(FETCH_TIMEOUT_MS)

    def started(self, voter: int) -> None:
        """Let a voter that is back catch up with the leader, or elect one if there is none."""
        if self.leader == NOBODY:
            self.elect_later(FETCH_TIMEOUT_MS)
        else:
            self._fetch(voter)

    def elect_later(self, least_ms: int) -> None:
        """Elect a leader after a fixed delay and a drawn one."""
        after_ms = least_ms + self._machines.drawn(ELECTION_BACKOFF_MS_MAX)
        self._machines.at(self._machines.now_ms + after_ms, partial(self._elect, self._epoch))

    def _elect(self, epoch: int) -> None:
        if epoch != self._epoch or not self.has_majority():
            return
        able = [voter for voter in range(len(self.held)) if self._machines.is_up[voter] and self.is_counted[voter]]
        self.leader = max(able, key=lambda voter: self.held[voter])
        end = self.held[self.leader]
        if end < self.high_watermark and not self._machines.loss_count:
            self.broken = f"voter {self.leader} leads with {end} of {self.high_watermark} committed records"
        for value in self.values[end:]:
            self._offsets.pop(value, None)
        self.held = [min(count, end) for count in self.held]
        self.high_watermark = min(self.high_watermark, end)
        self._first_of_epoch = end
        self._epoch += 1
        self.election_count += 1
        self.values[end:] = [NOBODY]  # The LeaderChange record.
        self._replicate()

    def _replicate(self) -> None:
        for voter in range(len(self.held)):
            if voter != self.leader and self._machines.is_up[voter]:
                self._fetch(voter)

    def _fetch(self, voter: int) -> None:
        """Let a voter flush the leader's log up to its end; the leader learns of it with the next fetch."""
        flushed = partial(self._flushed, voter, self._epoch, self._machines.incarnation[voter], len(self.values))
        self._machines.send(flushed, message_count=2)

    def _flushed(self, voter: int, epoch: int, incarnation: int, end: int) -> None:
        if (epoch, incarnation) == (self._epoch, self._machines.incarnation[voter]):
            self.held[voter], self.is_counted[voter] = max(self.held[voter], end), True
            self._commit()

    def _commit(self) -> None:
        """Raise the high watermark to what a majority has, and answer the writes below it."""
        self.held[self.leader] = len(self.values)
        reached = sorted(self.held, reverse=True)[len(self.held) // 2]
        if reached > max(self._first_of_epoch, self.high_watermark):
            self.high_watermark = reached
            for value in [value for value in self._waiting if self._offsets.get(value, reached) < reached]:
                self._machines.send(self._waiting.pop(value))

    def produce(self, value: int, voter: int, answered: Callable[[], None], moved: Callable[[], None]) -> None:
        """Take a write at a voter, and acknowledge it once committed; a voter that does not lead says so."""
        machines = self._machines
        if not machines.is_up[voter]:
            return
        if voter != self.leader:
            machines.send(moved)
            return
        if value not in self._offsets:  # An idempotent producer's batch that is sent again is known.
            self._offsets[value] = len(self.values)
            self.values.append(value)
            self._replicate()
        if self._offsets[value] < self.high_watermark:
            machines.send(answered)
        else:
            self._waiting[value] = answered
            self._commit()

    def kept(self) -> list[int]:
        """Return the values that the leader has, or without one the longest log."""
        return self.values if self.leader != NOBODY else self.values[: max(self.held)]


class QuorumProducer:
    """Write to the leaders as the simulation's idempotent producers do: one in flight, sent again until answered."""

    def __init__(self, run: QuorumRun, entropy: SplitMix64) -> None:
        self._run = run
        self._machines = run.machines
        self._entropy = entropy
        self._leaders: dict[int, int] = {}

    def write(self) -> None:
        """Send the next write to a drawn partition."""
        if self._run.is_over:
            return
        partition = self._entropy.next_int_bound(len(self._run.quorums))
        write = Write(len(self._run.writes), partition, self._machines.now_ms)
        self._run.writes.append(write)
        self._try(write, 0)

    def _try(self, write: Write, tries: int, *, forgets: bool = False) -> None:
        if write.tries != tries:
            return  # It was answered, or is sent again already.
        if forgets:
            self._leaders.pop(write.partition, None)
        if self._machines.now_ms - write.sent_ms > DELIVERY_MS_MAX:
            self._finish(write)
            return
        quorum = self._run.quorums[write.partition]
        voter = self._leaders.setdefault(write.partition, quorum.leader)
        write.tries += 1
        again = partial(self._try, write, write.tries, forgets=True)
        if voter == NOBODY:
            self._machines.at(self._machines.now_ms + RETRY_MS, again)
        else:
            answered, produce = partial(self._on_acknowledged, write), quorum.produce
            self._machines.send(lambda: produce(write.value, voter, answered, again))
            self._machines.at(self._machines.now_ms + ANSWER_MS_MAX, again)

    def _on_acknowledged(self, write: Write) -> None:
        if write.tries >= 0:
            write.latency_ms = self._machines.now_ms - write.sent_ms
            self._finish(write)

    def _finish(self, write: Write) -> None:
        write.tries = -1
        think_ms = 1 + self._entropy.next_int_bound(2 * self._run.parameters.produce_ms)
        self._machines.at(self._machines.now_ms + think_ms, self.write)


class QuorumRun:
    """Run one quorum for each partition on the same machines."""

    def __init__(self, parameters: Parameters, seed: int) -> None:
        self.parameters = parameters
        self.machines = Machines(parameters.factor, SplitMix64(derive(seed, _STREAM)))
        self.quorums = [PartitionQuorum(self.machines) for _ in range(parameters.partitions)]
        self.writes: list[Write] = []
        self.is_over = False
        self._plan = failures_of(parameters, seed)
        self._time = Availability()
        for producer in range(parameters.producers):
            entropy = SplitMix64(derive(seed, _STREAM, producer))
            begin_ms = BEGIN_MS + entropy.next_int_bound(parameters.produce_ms)
            self.machines.at(begin_ms, QuorumProducer(self, entropy).write)

    def run(self) -> tuple[Measures, str]:
        """Run to the end; return what was counted, and what is broken, "" if nothing."""
        end_ms, machines = duration_of(self.parameters), self.machines
        for quorum in self.quorums:
            quorum.elect_later(0)
        for fault in self._plan:
            machines.at(fault.start_ms, partial(self._strike, fault))
        for at_ms in range(BEGIN_MS, end_ms, SAMPLE_MS):
            machines.at(at_ms, self._look)
        machines.at(end_ms, self._heal)
        machines.run_until(end_ms + HEAL_MS)
        return self._measures(), next((quorum.broken for quorum in self.quorums if quorum.broken), "")

    def _strike(self, fault: Fault) -> None:
        machines, loses_disk = self.machines, fault.kind is FaultKind.WIPE
        of_rack = fault.kind is FaultKind.RACK_OUTAGE
        for voter, is_up in enumerate(machines.is_up):
            if is_up and fault.target == (voter % self.parameters.rack_count if of_rack else voter):
                machines.is_up[voter] = False
                machines.incarnation[voter] += 1
                machines.loss_count += loses_disk
                for quorum in self.quorums:
                    quorum.stopped(voter, loses_disk=loses_disk)
                machines.at(machines.now_ms + fault.duration_ms, partial(self._repair, voter))

    def _repair(self, voter: int) -> None:
        if not self.machines.is_up[voter]:
            self.machines.is_up[voter] = True
            for quorum in self.quorums:
                quorum.started(voter)

    def _heal(self) -> None:
        self.is_over = True
        for voter in range(len(self.machines.is_up)):
            self._repair(voter)

    def _look(self) -> None:
        for quorum in self.quorums:
            leads = quorum.leader != NOBODY
            self._time.note(has_leader=leads, takes_writes=leads and quorum.has_majority())

    def _measures(self) -> Measures:
        kept = [[value for value in quorum.kept() if value != NOBODY] for quorum in self.quorums]
        known = [set(values) for values in kept]
        acked = [write for write in self.writes if write.latency_ms >= 0]
        lost = sum(write.value not in known[write.partition] for write in acked)
        return Measures(
            write_count=len(self.writes),
            acked_all=len(acked),
            lost_all=lost,
            lost_to_other=lost,
            duplicate_count=sum(len(values) - len(set(values)) for values in kept),
            **attrs.asdict(self._time),
            clean_elections=sum(max(0, quorum.election_count - 1) for quorum in self.quorums),
            failure_count=len(self._plan),
            loss_count=self.machines.loss_count,
            message_count=self.machines.message_count,
        ).with_latencies(write.latency_ms for write in acked)


def run_quorum(parameters: Parameters, seed: int) -> tuple[Measures, str]:
    """Run the quorums of a study's run; return what was counted, and what is broken, "" if nothing."""
    return QuorumRun(parameters, seed).run()
