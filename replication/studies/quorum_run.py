"""A log on a majority quorum under the failures of a study: a quorum of `factor` voters for each partition.

Constraints: the failures are those that Kafka's replication sees with the same seed. At the end everything is repaired,
and what was acknowledged and is not in the leader's log is lost. Committed records are compared between all replicas:
a difference is a finding.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import attrs

from broker.entropy import SplitMix64, derive
from replication.explore.quorum_model import has_majority
from replication.simulation.clients import DELIVERY_MS_MAX, RETRY_MS
from replication.simulation.faults import Fault
from replication.simulation.options import FaultKind
from replication.studies.isr_run import duration_of, failures_of
from replication.studies.measures import SAMPLE_MS, Availability, Measures
from replication.studies.parameters import Parameters
from replication.studies.quorum import NOBODY, Machines, PartitionQuorum

HEAL_MS: Final = 60_000
_STREAM: Final = 41
BEGIN_MS: Final = 2_000
ANSWER_MS_MAX: Final = 7_000
"""How long a leader has for an answer, as in the simulation: produce_ms_max and answer_ms_max."""


@attrs.define
class Write:
    """Hold one write; `latency_ms` is -1 until it is acknowledged, `tries` is -1 once it is over."""

    value: int
    partition: int
    sent_ms: int
    latency_ms: int = -1
    tries: int = 0


class QuorumRun:
    """Run one quorum for each partition on the same machines."""

    def __init__(self, parameters: Parameters, seed: int) -> None:
        self.parameters = parameters
        self._seed = seed
        self.machines = Machines(parameters.factor, SplitMix64(derive(seed, _STREAM)))
        self.quorums = [PartitionQuorum(self.machines) for _ in range(parameters.partitions)]
        self.writes: list[Write] = []
        self.is_over = False
        self.losses = 0
        self.time = Availability()

    def run(self) -> tuple[Measures, str]:
        """Run to the end; return what was counted, and what is broken, "" if nothing."""
        end_ms, machines = duration_of(self.parameters), self.machines
        for quorum in self.quorums:
            for voter in range(machines.count):
                quorum.begin(voter, 0)
        for producer in range(self.parameters.producers):
            QuorumProducer(self, SplitMix64(derive(self._seed, _STREAM, producer))).begin()
        plan = failures_of(self.parameters, self._seed)
        for fault in plan:
            machines.at(fault.at_ms, partial(self._strike, fault))
        for at_ms in range(BEGIN_MS, end_ms, SAMPLE_MS):
            machines.at(at_ms, self._look)
        machines.at(end_ms, self._heal)
        machines.run_until(end_ms + HEAL_MS)
        return self._measures(len(plan)), self._broken()

    # Failures.

    def _strike(self, fault: Fault) -> None:
        machines = self.machines
        of_rack = fault.kind is FaultKind.RACK_OUTAGE
        for voter in range(machines.count):
            if (voter % self.parameters.rack_count if of_rack else voter) != fault.target or not machines.is_up[voter]:
                continue
            machines.stop(voter)
            if fault.kind is FaultKind.WIPE:
                self.losses += 1
                for quorum in self.quorums:
                    quorum.replicas[voter].wipe()
            machines.at(machines.now_ms + fault.for_ms, partial(self._repair, voter))

    def _repair(self, voter: int) -> None:
        if not self.machines.is_up[voter]:
            self.machines.is_up[voter] = True
            for quorum in self.quorums:
                quorum.restart(voter)

    def _heal(self) -> None:
        self.is_over = True
        for voter in range(self.machines.count):
            self._repair(voter)

    # Counting.

    def _look(self) -> None:
        """Note which partitions could commit a write now: a running leader, and a running majority that counts."""
        is_up = self.machines.is_up
        for quorum in self.quorums:
            leads = any(replica.leads and is_up[replica.voter] for replica in quorum.replicas)
            counted = sum(replica.is_counted and is_up[replica.voter] for replica in quorum.replicas)
            self.time.note(has_leader=leads, takes_writes=leads and has_majority(counted, len(is_up)))

    def _measures(self, failure_count: int) -> Measures:
        kept = [_kept(quorum) for quorum in self.quorums]
        known = [set(values) for values in kept]
        acked = [write for write in self.writes if write.latency_ms >= 0]
        lost = sum(write.value not in known[write.partition] for write in acked)
        return Measures(
            write_count=len(self.writes),
            acked_all=len(acked),
            lost_all=lost,
            lost_to_other=lost,
            duplicate_count=sum(
                len(values) - values.count(NOBODY) - len(found - {NOBODY})
                for values, found in zip(kept, known, strict=True)
            ),
            **attrs.asdict(self.time),
            clean_elections=sum(max(0, quorum.election_count - 1) for quorum in self.quorums),
            failure_count=failure_count,
            loss_count=self.losses,
            message_count=self.machines.message_count,
        ).with_latencies(write.latency_ms for write in acked)

    def _broken(self) -> str:
        """Return which partition's replicas differ in what they hold for committed, "" if none."""
        if self.losses:  # Disks were lost, perhaps a majority's: what was committed may be gone.
            return ""
        for partition, quorum in enumerate(self.quorums):
            longest = max(quorum.replicas, key=lambda replica: replica.high_watermark)
            for replica in quorum.replicas:
                end = replica.high_watermark
                if replica.values[:end] != longest.values[:end]:
                    return f"partition {partition}: voters {replica.voter} and {longest.voter} committed other records"
        return ""


def _kept(quorum: PartitionQuorum) -> list[int]:
    """Return the values in the log of the partition's leader, or without one of the furthest replica."""
    return max(quorum.replicas, key=lambda replica: (replica.leads, replica.epoch, replica.last())).values


class QuorumProducer:
    """Write to the leaders as the simulation's idempotent producers do: one in flight, sent again until answered."""

    def __init__(self, quorums: QuorumRun, entropy: SplitMix64) -> None:
        self._quorums = quorums
        self._entropy = entropy
        self._leaders: dict[int, int] = {}

    def begin(self) -> None:
        """Begin after a drawn time."""
        produce_ms = self._quorums.parameters.produce_ms
        self._quorums.machines.at(BEGIN_MS + self._entropy.next_int_bound(produce_ms), self._write)

    def _write(self) -> None:
        quorums = self._quorums
        if not quorums.is_over:
            partition = self._entropy.next_int_bound(quorums.parameters.partitions)
            write = Write(len(quorums.writes), partition, quorums.machines.now_ms)
            quorums.writes.append(write)
            self._try(write)

    def _try(self, write: Write) -> None:
        quorums = self._quorums
        if quorums.machines.now_ms - write.sent_ms > DELIVERY_MS_MAX:
            self._finish(write)
            return
        voter = self._leaders.get(write.partition, NOBODY)
        if voter == NOBODY:
            voter = self._entropy.next_int_bound(quorums.parameters.factor)
        write.tries += 1
        tries = write.tries

        def answered() -> None:
            if write.tries >= 0:
                self._leaders[write.partition] = voter
                write.latency_ms = quorums.machines.now_ms - write.sent_ms
                self._finish(write)

        def moved(leader: int) -> None:
            if write.tries == tries:
                self._leaders[write.partition] = leader
                quorums.machines.at(quorums.machines.now_ms + RETRY_MS * (leader == NOBODY), again)

        def again() -> None:
            if write.tries == tries:
                self._try(write)

        def unanswered() -> None:
            if write.tries == tries:
                self._leaders.pop(write.partition, None)
                self._try(write)

        quorums.machines.send(
            voter, lambda: quorums.quorums[write.partition].produce(write.value, voter, answered, moved)
        )
        quorums.machines.at(quorums.machines.now_ms + ANSWER_MS_MAX, unanswered)

    def _finish(self, write: Write) -> None:
        write.tries = -1
        quorums = self._quorums
        quorums.machines.at(
            quorums.machines.now_ms + 1 + self._entropy.next_int_bound(2 * quorums.parameters.produce_ms), self._write
        )


def run_quorum(parameters: Parameters, seed: int) -> tuple[Measures, str]:
    """Run the quorums of a study's run; return what was counted, and what is broken, "" if nothing."""
    return QuorumRun(parameters, seed).run()
