"""A run of days stays small: what all replicas in sync hold is forgotten, and is still counted and judged."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.ids import BrokerId, Offset
from broker.units import TimeMs
from log.batches.build import BatchSpec, build_batch
from log.record import Record
from replication.checkers import DurabilityReport, settled
from replication.checkers.clients import Write
from replication.checkers.observed_log import Entry
from replication.checkers.settled import SETTLED, SettledObservedLog, SettledReferenceLog, Tail
from replication.checkers.view import NodeView
from replication.roles.replica_log import ReplicaLog
from replication.rules.partition import PartitionState
from replication.rules.produce import Fate
from replication.testing import ClusterSpec, client_writes
from replication.testing.served_cluster import ServedCluster
from tests.kafka.protocol_draws import VERSIONS
from tests.kafka.protocol_ends import Simulated, ask

STEPS = st.lists(st.tuples(st.sampled_from(["add", "cut", "forget"]), st.integers(0, 40)), max_size=30)


@given(STEPS)
def test_a_tail_is_the_end_of_the_whole_log(steps: list[tuple[str, int]]) -> None:
    whole: list[Entry] = []
    tail, start = Tail(SettledReferenceLog(0)), 0
    for name, number in steps:
        if name == "add":
            added = [Entry(1, len(whole) + place) for place in range(number % 7)]
            whole += added
            tail += added
        elif name == "cut":
            del whole[number:]
            del tail[number:]
            start = min(start, len(whole))
        else:
            start = max(start, min(number, len(whole)))
            tail.forget_before(start)
        known = [SETTLED] * start + whole[start:]
        assert (len(tail), bool(tail), list(tail)) == (len(whole), len(whole) > start, whole[start:])
        assert tail[:] == known
        assert tail[number : number + 5] == known[number : number + 5]
        assert [tail[place] for place in range(-len(whole), len(whole))] == known * 2


def test_a_log_that_is_copied_anew_is_kept_from_the_settled_end_on() -> None:
    truth = SettledReferenceLog(0)
    truth.settled_end = 5
    tail = Tail(truth)
    for start in (0, 3, 6):
        tail += [Entry(1, start + place) for place in range(3)]
    assert (len(tail), [entry.value for entry in tail]) == (9, [5, 6, 7, 8])


@pytest.mark.parametrize(("offset", "epoch", "is_settled"), [(2, 1, True), (2, 0, False), (6, 3, True), (6, 1, False)])
def test_a_late_response_of_a_former_leader_settles_nothing(
    monkeypatch: pytest.MonkeyPatch, offset: int, epoch: int, is_settled: bool
) -> None:
    """A leader that was cut off answers with an offset at which its successor's record is settled."""
    monkeypatch.setattr(settled, "KEPT_COUNT", 0)
    truth = SettledReferenceLog(0)
    truth.committed += [Entry(1 if place < 5 else 3, place) for place in range(8)]
    log, node = cast(ReplicaLog, None), cast(NodeView, Mock(incarnation=0, broker=BrokerId(0)))
    observed = SettledObservedLog(truth, log, node, None)
    observed.entries += truth.committed[:]
    truth.observed_logs[BrokerId(0)] = observed
    truth.state = PartitionState(replicas=(BrokerId(0),), isr=(BrokerId(0),), leader=BrokerId(0))
    truth.settle([])
    late = Write(99, 0, 1, TimeMs(0), Fate.ACKED, TimeMs(0), Offset(offset), epoch)
    assert truth.settled_end == 8
    assert truth.is_settled(late) is is_settled
    assert truth.settle([late]) == ([] if is_settled else [late])


class Written:
    """Hold a served cluster that settles after each few records, and write to partition 0 of its topic."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, is_settling: bool = True, **options: object) -> None:
        if is_settling:
            monkeypatch.setattr(settled, "KEPT_COUNT", 20)
            monkeypatch.setattr(client_writes, "SETTLE_COUNT", 100)
        self.served = ServedCluster(ClusterSpec(topics={"t": 1}, **options))  # type: ignore[arg-type]  # Of a spec.
        self.served.begin()
        self.end = Simulated(self.served)
        self.number = self.served.number_of("t", 0)

    @property
    def leader(self) -> BrokerId:
        """Return the leader by the controller."""
        return self.served.cluster.controller.image.partitions[self.number].leader

    def write(self, count: int, acks: int = -1) -> None:
        """Write so many batches of ten records."""
        api, _, version = VERSIONS["Produce"]
        for _ in range(count):
            now_ms = TimeMs(self.served.spec.wall_clock_ms + self.served.now_ms)
            records = build_batch(BatchSpec(), [Record(Offset(each), now_ms, None, b"v") for each in range(10)])
            data = [{"name": "t", "partition_data": [{"index": 0, "records": records}]}]
            values = {"transactional_id": None, "acks": acks, "timeout": 5_000, "topic_data": data}
            answer = ask(self.end, self.leader, api, version, values)
            assert answer["responses"][0]["partition_responses"][0]["error_code"] == "none", answer

    def delete(self, offset: int) -> None:
        """Delete the records below an offset."""
        api, _, version = VERSIONS["DeleteRecords"]
        topics = [{"name": "t", "partitions": [{"partition_index": 0, "offset": offset}]}]
        ask(self.end, self.leader, api, version, {"topics": topics, "timeout": 5_000})

    def away(self, broker: BrokerId, *, wipes: bool = False) -> None:
        """Let a broker be away for 15 s, and come back."""
        node = self.served.cluster.nodes[broker]
        node.kill()
        if wipes:
            node.wipe()
        self.wait(15)
        self.served.cluster.start_broker(broker)
        self.wait(15)

    def wait(self, seconds: int) -> None:
        """Let time pass."""
        for _ in range(seconds):
            self.served.advance(self.served.now_ms + 1_000)

    def report(self) -> DurabilityReport:
        """End the run, which broke no invariant, and return what it lost."""
        outcome = self.served.finish()
        assert outcome.findings == ()
        return outcome.durability


def test_what_is_settled_is_forgotten_and_counted_through_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers end, lose disks and copy again, records are deleted: the verdict is that of a run that keeps all."""
    found = []
    for is_settling in (False, True):
        run = Written(monkeypatch, is_settling=is_settling)
        others = [broker for broker in run.served.spec.ids if broker != run.leader]
        run.write(40)
        run.delete(150)
        run.away(others[0])
        run.write(20, acks=1)
        run.away(others[1], wipes=True)
        run.write(30)
        run.away(run.leader)
        run.write(10)
        writes, reference = run.served.cluster.history.writes, run.served.simulation.checker.references[run.number]
        kept = max(list.__len__(each) for each in (reference.committed, *_entries(reference)))
        found.append((run.report(), len(writes) < 300, kept < 300))
    assert found == [(DurabilityReport(800, 200, ()), False, False), (DurabilityReport(800, 200, ()), True, True)]


def _entries(reference: object) -> list[list[Entry]]:
    return [observed.entries for observed in reference.observed_logs.values()]  # type: ignore[attr-defined]  # A log.


@pytest.mark.parametrize("is_settling", [False, True])
def test_a_settled_record_that_an_unclean_election_loses_is_lost(
    monkeypatch: pytest.MonkeyPatch, is_settling: bool
) -> None:
    run = Written(monkeypatch, is_settling=is_settling, brokers=2, unclean_election=True, min_insync_replicas=1)
    run.write(5)
    leader = run.leader
    (other,) = (broker for broker in run.served.spec.ids if broker != leader)
    run.wait(2)
    run.served.cluster.nodes[other].kill()
    run.wait(15)
    run.write(30)
    run.served.cluster.nodes[leader].kill()
    run.wait(1)
    run.served.cluster.start_broker(other)
    run.wait(30)
    assert run.leader == other
    run.write(1)
    report = run.report()
    assert (report.acked_count, len(report.lost_by_all)) == (360, 300)
    assert sorted(each.offset for each in report.lost) == list(range(50, 350))
    assert all(each.cause.startswith("unclean election") for each in report.lost)


@pytest.mark.parametrize("is_settling", [False, True])
def test_a_loss_by_the_only_disk_is_not_blamed_on_the_election_alone(
    monkeypatch: pytest.MonkeyPatch, is_settling: bool
) -> None:
    run = Written(monkeypatch, is_settling=is_settling, brokers=1)
    run.write(20)
    run.away(BrokerId(0), wipes=True)
    causes = {each.cause for each in run.report().lost_by_all}
    (cause,) = causes
    assert cause.startswith("loss of the last log that had them, then the unclean election of broker 0 at ")


@pytest.mark.parametrize("is_settling", [False, True])
def test_a_settled_record_that_a_later_election_brings_back_is_not_lost(
    monkeypatch: pytest.MonkeyPatch, is_settling: bool
) -> None:
    run = Written(monkeypatch, is_settling=is_settling, brokers=2, unclean_election=True, min_insync_replicas=1)
    run.write(5)
    leader, nodes = run.leader, run.served.cluster.nodes
    (other,) = (broker for broker in run.served.spec.ids if broker != leader)
    run.wait(2)
    nodes[other].kill()
    run.wait(15)
    run.write(30)
    nodes[leader].kill()
    run.served.cluster.start_broker(other)
    run.wait(30)
    assert (run.leader, len(run.served.simulation.durability().lost)) == (other, 300)
    nodes[other].kill()
    run.wait(15)
    run.served.cluster.start_broker(leader)
    run.wait(30)
    assert run.leader == leader
    run.write(5)
    assert run.report() == DurabilityReport(400, 0, ())


def test_an_acknowledged_write_that_is_not_there_is_never_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Written(monkeypatch)
    run.write(1)
    write = run.served.cluster.history.writes[7]
    write.value, write.epoch = 12_345, 5
    run.write(40)
    assert [each.value for each in run.served.cluster.history.writes if each.offset < 100] == [12_345]
    assert [each.offset for each in run.report().lost] == [7]


def test_retention_runs_as_the_topic_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """log.retention.check.interval.ms is five minutes; the newest segment of a quiet log goes, too."""
    run = Written(monkeypatch)
    configure: Callable[..., None] = run.served._configure_logs
    configure((run.number,), {"retention.ms": 60_000, "cleanup.policy": ("delete",)})
    run.write(30)
    run.wait(700)
    run.write(2)
    assert len(run.served.records("t", 0)) == 20
    offsets = run.served.number_of("__consumer_offsets", 0)
    assert not any(node.logs[offsets].log.config.deletes for node in run.served.cluster.nodes.values())
    assert run.report() == DurabilityReport(320, 0, ())
