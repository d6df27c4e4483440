"""Run a log on a majority quorum under the failures of a study, and count the same as for Kafka's replication.

What it decides: the order of events: messages with the delays of the simulated network, timeouts, failures and
repairs, and producers that write as those of the simulation do. A partition is one quorum of `factor` voters.

Constraints: the failures are those that Kafka's replication sees with the same seed. At the end everything is repaired,
and what was acknowledged and is not in the leader's log is lost. Committed records are compared between all replicas:
a difference is a finding.

How: a heap of (time, number, action). A leader that no majority fetches from for 1.5 fetch timeouts resigns, a follower
that cannot fetch for the fetch timeout becomes a candidate; candidates stand again after a drawn time.

Example: with 3 voters and no failure every write is acknowledged after four messages.

Left out: controlled shutdown (a stop is a crash), several racks, batching.

Source: KIP-595; controller.quorum.fetch.timeout.ms 2000, controller.quorum.election.timeout.ms 1000 and
controller.quorum.election.backoff.max.ms 1000 of Kafka 4.3's QuorumConfig.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from typing import Final

import attrs

from broker.entropy import SplitMix64, derive
from replication.simulation.faults import Fault
from replication.simulation.options import FaultKind, NetworkOptions
from replication.studies.failures import duration_of, failures_of
from replication.studies.parameters import Parameters
from replication.studies.quorum_producer import BEGIN_MS, QuorumProducer, Write
from replication.studies.quorum_voter import NOBODY, QuorumReplica
from replication.studies.rows import Measures, with_latencies

FETCH_TIMEOUT_MS: Final = 2_000
ELECTION_TIMEOUT_MS: Final = 1_000
ELECTION_BACKOFF_MS_MAX: Final = 1_000
FETCH_WAIT_MS: Final = 500
FETCH_RECORDS_MAX: Final = 1_000
SAMPLE_MS: Final = 100
HEAL_MS: Final = 60_000
_STREAM: Final = 41


@attrs.define
class _Waiting:
    """Hold a follower's fetch that waits for a record."""

    number: int
    end: int


class QuorumRun:
    """Run one quorum for each partition on the same machines."""

    def __init__(self, parameters: Parameters, seed: int) -> None:
        self.parameters = parameters
        self._entropy = SplitMix64(derive(seed, _STREAM))
        self._seed = seed
        self._delay_ms_max = NetworkOptions().delay_ms_max
        self.now_ms = 0
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._asked = 0
        voters = range(parameters.factor)
        self.is_up = [True] * parameters.factor
        self._incarnation = [0] * parameters.factor
        self.quorums = [[QuorumReplica(v, parameters.factor) for v in voters] for _ in range(parameters.partitions)]
        self._timer = [[0] * parameters.factor for _ in range(parameters.partitions)]
        self._heard_ms: list[list[dict[int, int]]] = [[{} for _ in voters] for _ in range(parameters.partitions)]
        self._fetching = [[_Waiting(0, -1) for _ in voters] for _ in range(parameters.partitions)]
        self.writes: list[Write] = []
        self._pending: list[dict[tuple[int, int], Callable[[], None]]] = [{} for _ in range(parameters.partitions)]
        """What is to be answered when an offset of an epoch is committed."""
        self.is_over = False
        self.messages = 0
        self.elections = 0
        self.losses = 0
        self.unavailable_ms = self.leaderless_ms = self.partition_ms = 0

    # The clock and the network.

    def at(self, at_ms: int, action: Callable[[], None]) -> None:
        """Schedule an action."""
        self._asked += 1
        heappush(self._heap, (at_ms, self._asked, action))

    def send(self, receiver: int, action: Callable[[], None]) -> None:
        """Let a message arrive at a voter's process, if that still runs then; NOBODY is a client, which always does."""
        incarnation = NOBODY if receiver == NOBODY else self._incarnation[receiver]

        def arrive() -> None:
            if receiver == NOBODY or (self.is_up[receiver] and self._incarnation[receiver] == incarnation):
                self.messages += 1
                action()

        self.at(self.now_ms + 1 + self._entropy.next_int_bound(self._delay_ms_max), arrive)

    def run(self) -> tuple[Measures, str]:
        """Run to the end; return what was counted, and what is broken, "" if nothing."""
        end_ms = duration_of(self.parameters)
        for partition in range(self.parameters.partitions):
            for voter in range(self.parameters.factor):
                self._wait(partition, voter, 0)
        for producer in range(self.parameters.producers):
            QuorumProducer(self, SplitMix64(derive(self._seed, _STREAM, producer))).begin()
        plan = failures_of(self.parameters, self._seed)
        for fault in plan:
            self.at(fault.at_ms, partial(self._strike, fault))
        for at_ms in range(BEGIN_MS, end_ms, SAMPLE_MS):
            self.at(at_ms, self._look)
        self.at(end_ms, self._heal)
        self._play_until(end_ms + HEAL_MS)
        return self._measures(len(plan)), self._broken()

    def _play_until(self, end_ms: int) -> None:
        while self._heap and self._heap[0][0] <= end_ms:
            self.now_ms, _, action = heappop(self._heap)
            action()

    # Failures.

    def _strike(self, fault: Fault) -> None:
        parameters = self.parameters
        of_rack = fault.kind is FaultKind.RACK_OUTAGE
        for voter in range(parameters.factor):
            if (voter % parameters.rack_count if of_rack else voter) != fault.target or not self.is_up[voter]:
                continue
            self.is_up[voter] = False
            self._incarnation[voter] += 1
            if fault.kind is FaultKind.WIPE:
                self.losses += 1
                for quorum in self.quorums:
                    quorum[voter].wipe()
            self.at(self.now_ms + fault.for_ms, partial(self._repair, voter))

    def _repair(self, voter: int) -> None:
        if self.is_up[voter]:
            return
        self.is_up[voter] = True
        for partition, quorum in enumerate(self.quorums):
            replica = quorum[voter]
            if replica.leads:  # In an epoch whose leader has restarted nobody leads.
                replica.leader = NOBODY
            self._begin(partition, voter)

    def _heal(self) -> None:
        self.is_over = True
        for voter, is_up in enumerate(self.is_up):
            if not is_up:
                self._repair(voter)

    # Elections.

    def _begin(self, partition: int, voter: int) -> None:
        """Wait for a leader."""
        self._wait(partition, voter, FETCH_TIMEOUT_MS)

    def _wait(self, partition: int, voter: int, least_ms: int) -> None:
        """Become a candidate unless a leader is heard within the time, and a drawn one."""
        self._timer[partition][voter] += 1
        number, incarnation = self._timer[partition][voter], self._incarnation[voter]

        def due() -> None:
            if self.is_up[voter] and (number, incarnation) == (self._timer[partition][voter], self._incarnation[voter]):
                self._stand(partition, voter)

        self.at(self.now_ms + least_ms + self._entropy.next_int_bound(ELECTION_BACKOFF_MS_MAX), due)

    def _stand(self, partition: int, voter: int) -> None:
        replica = self.quorums[partition][voter]
        self._wait(partition, voter, ELECTION_TIMEOUT_MS)
        if not replica.is_counted:
            self._find_leader(partition, voter)
            return
        replica.stand()
        epoch, last = replica.epoch, replica.last()
        for other in range(self.parameters.factor):
            if other != voter:
                self.send(other, partial(self._on_vote_request, partition, other, voter, epoch, last))
        if replica.take_vote(voter, epoch):
            self._lead(partition, voter)

    def _find_leader(self, partition: int, voter: int) -> None:
        """Ask the others who leads, as a replica does that may not vote."""
        for other in range(self.parameters.factor):
            if other != voter:
                self.send(other, partial(self._tell_leader, partition, other, voter))

    def _tell_leader(self, partition: int, voter: int, asker: int) -> None:
        replica = self.quorums[partition][voter]
        if replica.leads:
            epoch = replica.epoch
            self.send(asker, lambda: self._follow(partition, asker, voter, epoch))

    def _on_vote_request(self, partition: int, voter: int, candidate: int, epoch: int, last: tuple[int, int]) -> None:
        replica = self.quorums[partition][voter]
        if replica.grants(candidate, epoch, last):
            self._wait(partition, voter, ELECTION_TIMEOUT_MS)
            self.send(candidate, lambda: self._on_vote(partition, candidate, voter, epoch))

    def _on_vote(self, partition: int, voter: int, other: int, epoch: int) -> None:
        if self.quorums[partition][voter].take_vote(other, epoch):
            self._lead(partition, voter)

    def _lead(self, partition: int, voter: int) -> None:
        """Tell the others, and resign when no majority fetches any more."""
        replica = self.quorums[partition][voter]
        self.elections += 1
        self._timer[partition][voter] += 1
        epoch, incarnation = replica.epoch, self._incarnation[voter]
        self._heard_ms[partition][voter] = dict.fromkeys(range(self.parameters.factor), self.now_ms)
        for other in range(self.parameters.factor):
            if other != voter:
                self.send(other, partial(self._follow, partition, other, voter, epoch))

        def look() -> None:
            if incarnation != self._incarnation[voter] or not replica.leads or replica.epoch != epoch:
                return
            since_ms = self.now_ms - FETCH_TIMEOUT_MS * 3 // 2
            heard = sum(
                at_ms >= since_ms for other, at_ms in self._heard_ms[partition][voter].items() if other != voter
            )
            if heard < self.parameters.factor // 2:
                replica.leader = NOBODY
                self._begin(partition, voter)
            else:
                self.at(self.now_ms + FETCH_TIMEOUT_MS // 4, look)

        look()

    # Fetching.

    def _follow(self, partition: int, voter: int, leader: int, epoch: int) -> None:
        replica = self.quorums[partition][voter]
        if epoch < replica.epoch or (epoch == replica.epoch and replica.leader == leader):
            return
        replica.see(epoch)
        replica.leader = leader
        self._fetch(partition, voter)

    def _fetch(self, partition: int, voter: int) -> None:
        """Fetch from the leader; without an answer in the fetch timeout, stand for election."""
        replica = self.quorums[partition][voter]
        self._wait(partition, voter, FETCH_TIMEOUT_MS)
        leader, epoch, end, last = replica.leader, replica.epoch, replica.end, replica.last()[0]
        counted = replica.is_counted
        self.send(leader, lambda: self._on_fetch(partition, leader, voter, (epoch, end, last), is_counted=counted))

    def _on_fetch(
        self, partition: int, leader: int, voter: int, fetch: tuple[int, int, int], *, is_counted: bool
    ) -> None:
        replica = self.quorums[partition][leader]
        epoch, end, last = fetch
        if not replica.leads or replica.epoch != epoch:
            return
        self._heard_ms[partition][leader][voter] = self.now_ms
        agreed = replica.agreed_end(end, last)
        if agreed < end:
            self.send(voter, lambda: self._on_cut(partition, voter, epoch, agreed))
            return
        if replica.hear_fetch(voter, end, is_counted=is_counted):
            self._committed(partition, leader)
        waiting = self._fetching[partition][voter] = _Waiting(self._fetching[partition][voter].number + 1, end)
        if end < replica.end:
            self._answer(partition, leader, voter)
        else:
            number = waiting.number
            self.at(
                self.now_ms + FETCH_WAIT_MS,
                lambda: (
                    self._answer(partition, leader, voter)
                    if self._fetching[partition][voter].number == number and self.is_up[leader]
                    else None
                ),
            )

    def _answer(self, partition: int, leader: int, voter: int) -> None:
        """Answer a follower's waiting fetch, once."""
        replica, waiting = self.quorums[partition][leader], self._fetching[partition][voter]
        if waiting.end < 0 or not replica.leads:
            return
        start = waiting.end
        self._fetching[partition][voter] = _Waiting(waiting.number + 1, -1)
        stop = min(replica.end, start + FETCH_RECORDS_MAX)
        found = (start, replica.epochs[start:stop], replica.values[start:stop], replica.high_watermark)
        epoch, is_whole = replica.epoch, stop == replica.end
        self.send(voter, lambda: self._on_records(partition, voter, epoch, found, is_whole=is_whole))

    def _on_cut(self, partition: int, voter: int, epoch: int, end: int) -> None:
        replica = self.quorums[partition][voter]
        if replica.epoch == epoch:
            replica.cut(end)
            self._fetch(partition, voter)

    def _on_records(
        self, partition: int, voter: int, epoch: int, found: tuple[int, list[int], list[int], int], *, is_whole: bool
    ) -> None:
        replica = self.quorums[partition][voter]
        if replica.epoch != epoch or replica.leads or found[0] != replica.end:
            return
        replica.extend(*found)
        replica.is_counted = replica.is_counted or is_whole
        self._fetch(partition, voter)

    def _committed(self, partition: int, leader: int) -> None:
        """Answer the writes that are committed, and the fetches that wait for the news."""
        replica, pending = self.quorums[partition][leader], self._pending[partition]
        for epoch, offset in [place for place in pending if place[1] < replica.high_watermark]:
            # What an earlier leader appended there may be another record: its producer sends again.
            answer = pending.pop((epoch, offset))
            if epoch == replica.epoch:
                answer()

    # Producers.

    def produce(self, write: Write, voter: int, answered: Callable[[], None], moved: Callable[[int], None]) -> None:
        """Take a write at a voter: it is acknowledged once committed, or another voter is named."""
        replica = self.quorums[write.partition][voter]
        if not replica.leads:
            known = replica.leader if replica.leader != voter else NOBODY
            self.send(NOBODY, lambda: moved(known))
            return
        recent = replica.values[-FETCH_RECORDS_MAX:]
        # An idempotent producer's batch that is sent again is known.
        offset = (
            replica.end - len(recent) + recent.index(write.value)
            if write.value in recent
            else replica.append(write.value)
        )
        if offset < replica.high_watermark:
            self.send(NOBODY, lambda: answered())
        else:
            place = (replica.epoch, offset)
            self._pending[write.partition][place] = lambda: self.send(NOBODY, lambda: answered())
        if replica.high_watermark == replica.end:
            self._committed(write.partition, voter)
        for other in range(self.parameters.factor):
            self._answer(write.partition, voter, other)

    # Counting.

    def _look(self) -> None:
        """Note which partitions could commit a write now: a running leader, and a running majority that counts."""
        for quorum in self.quorums:
            self.partition_ms += SAMPLE_MS
            leads = any(replica.leads and self.is_up[replica.voter] for replica in quorum)
            counted = sum(replica.is_counted and self.is_up[replica.voter] for replica in quorum)
            self.leaderless_ms += SAMPLE_MS * (not leads)
            self.unavailable_ms += SAMPLE_MS * (not leads or 2 * counted <= len(quorum))

    def _kept(self, partition: int) -> list[int]:
        """Return the values in the log of the partition's leader, or without one of the furthest replica."""
        quorum = self.quorums[partition]
        best = max(quorum, key=lambda replica: (replica.leads, replica.epoch, replica.last()))
        return best.values

    def _measures(self, failure_count: int) -> Measures:
        kept = [self._kept(partition) for partition in range(self.parameters.partitions)]
        known = [set(values) for values in kept]
        acked = [write for write in self.writes if write.latency_ms >= 0]
        lost = sum(write.value not in known[write.partition] for write in acked)
        measures = Measures(
            write_count=len(self.writes),
            acked_all=len(acked),
            lost_all=lost,
            lost_to_other=lost,
            duplicate_count=sum(
                len(values) - values.count(NOBODY) - len(found - {NOBODY})
                for values, found in zip(kept, known, strict=True)
            ),
            unavailable_ms=self.unavailable_ms,
            leaderless_ms=self.leaderless_ms,
            partition_ms=self.partition_ms,
            clean_elections=max(0, self.elections - self.parameters.partitions),
            failure_count=failure_count,
            loss_count=self.losses,
            message_count=self.messages,
        )
        return with_latencies(measures, (write.latency_ms for write in acked))

    def _broken(self) -> str:
        """Return which partition's replicas differ in what they hold for committed, "" if none."""
        if self.losses:  # Disks were lost, perhaps a majority's: what was committed may be gone.
            return ""
        for partition, quorum in enumerate(self.quorums):
            longest = max(quorum, key=lambda replica: replica.high_watermark)
            for replica in quorum:
                end = replica.high_watermark
                if replica.values[:end] != longest.values[:end]:
                    return f"partition {partition}: voters {replica.voter} and {longest.voter} committed other records"
        return ""


def run_quorum(parameters: Parameters, seed: int) -> tuple[Measures, str]:
    """Run the quorums of a study's run; return what was counted, and what is broken, "" if nothing."""
    return QuorumRun(parameters, seed).run()
