"""What four excuses of the checkers cover and when they end.

I12 (a resumed epoch), I8 (a request given up, S100), and I4 to I7 and I29 (records written again in their epoch). With
ZooKeeper also I11, I12 and I21 (a replica that leads its old epoch once more after its log was deleted).
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final

import attrs
import pytest

from broker.ids import BrokerId, LeaderEpoch, Offset
from broker.units import DurationMs, TimeMs
from log.batches.build import build_batch
from log.batches.build_spec import BatchSpec
from log.files.checkpoints import EpochEntry
from log.record import Record
from replication.checkers import StepChecker, check_history, replicas
from replication.checkers.elections import Ground
from replication.checkers.observed_log import Entry, LogChange, ObservedLog
from replication.checkers.reference_log import ReferenceLog
from replication.checkers.retention_model import RetainedObservedLog, RetainedReferenceLog
from replication.roles.messages import Address, Message, NodeId, Produce
from replication.roles.outbox import Outbox
from replication.rules.settings import PartitionSettings
from replication.rules.switches import rules_of
from replication.simulation import Fault, FaultKind, Options, Simulation, quiet, swarm
from replication.simulation.cluster import Cluster
from replication.zookeeper.messages import LeaderAndIsr


def with_zookeeper(options: Options) -> Options:
    return attrs.evolve(options, role_settings=attrs.evolve(options.role_settings, has_zookeeper=True))


# I12: where a leader that lost its end went on, the epoch of what it copies there later is dated.


def i12(epochs: tuple[int, ...], cache: tuple[tuple[int, int], ...], resumed: set[int]) -> list[str]:
    """What is found in a log whose records are of `epochs`."""
    cached = tuple(EpochEntry(epoch=LeaderEpoch(epoch), start_offset=Offset(start)) for epoch, start in cache)
    observed: Any = SimpleNamespace(
        entries=[SimpleNamespace(epoch=epoch) for epoch in epochs], resumed=resumed, epochs=None
    )
    node: Any = SimpleNamespace(broker=BrokerId(0))
    return [what for _, what in replicas._check_epochs(node, observed, cached)]


def test_an_epoch_may_be_dated_where_its_leader_had_gone_on() -> None:
    assert i12((1, 2, 2, 2), ((1, 0), (2, 3)), {3}) == []


@pytest.mark.parametrize("resumed", [set(), {2}, {1, 2, 4}])
def test_an_epoch_that_is_dated_elsewhere_is_called_broken(resumed: set[int]) -> None:
    assert i12((1, 2, 2, 2), ((1, 0), (2, 3)), resumed) == ["broker 0: epoch 2 does not begin at 3"]


def test_another_epoch_that_is_dated_where_its_leader_had_gone_on_is_called_broken() -> None:
    assert i12((1, 2, 2, 3), ((1, 0), (2, 3)), {3}) == [
        "broker 0: epoch 2 does not begin at 3",
        "broker 0 does not know epoch 3 of its last record",
    ]


@pytest.mark.parametrize(
    ("seed", "minutes", "expected"),
    [(905093, 10, {(0, 0): {111}, (1, 0): {48}, (2, 0): {66}}), (7, 2, {})],
    ids=["brokers begin to lead after losses and without", "broker 1 leads its epoch again and has lost nothing"],
)
def test_only_a_leader_that_lost_its_end_and_leads_the_same_epoch_again_has_gone_on(
    seed: int, minutes: int, expected: dict[tuple[int, int], set[int]]
) -> None:
    """The offsets noted in a ZooKeeper run, by partition and broker."""
    simulation = Simulation(with_zookeeper(swarm(seed, DurationMs(minutes * 60_000), rules_of("3.5"))))
    assert simulation.finish().findings == ()
    noted = {
        (partition, int(broker)): observed.resumed
        for partition, reference in simulation.checker.references.items()
        for broker, observed in reference.observed_logs.items()
        if observed.resumed
    }
    assert noted == expected


# I8: a leader gives up a request that the controller takes, and counts too few until it hears of it.

SETTINGS = PartitionSettings(min_isr=1)
ZERO, ONE = BrokerId(0), BrokerId(1)


def leader(partition_epoch: int, pending: Any = None, leader_epoch: int = 4) -> Any:
    """A leader that knows itself to be alone in sync."""
    return SimpleNamespace(
        broker=ZERO,
        leader_epoch=leader_epoch,
        partition_epoch=partition_epoch,
        isr=(ZERO,),
        pending=pending,
        replica_count=2,
    )


def request(partition_epoch: int, leader_epoch: int = 4) -> Any:
    return SimpleNamespace(leader_epoch=leader_epoch, partition_epoch=partition_epoch, members=(ZERO, ONE))


def reference_at(partition_epoch: int, dropped: dict[BrokerId, int]) -> Any:
    """The controller has taken the request: both are in sync."""
    state = SimpleNamespace(isr=(ZERO, ONE), elr=(), partition_epoch=partition_epoch)
    return SimpleNamespace(state=state, dropped=dropped, leaders={}, asked={}, uncounted={})


def i8(reference: Any, claim: Any) -> list[str]:
    return [what for _, what in replicas.check_quorum(reference, claim, SETTINGS)]


def test_a_leader_that_gave_up_a_request_may_count_too_few_until_it_hears_of_it() -> None:
    assert i8(reference_at(8, {ZERO: 7}), leader(7)) == []


@pytest.mark.parametrize(
    ("dropped", "partition_epoch"),
    [({}, 7), ({ONE: 7}, 7), ({ZERO: 6}, 7), ({ZERO: 7}, 8), ({ZERO: 8}, 8)],
    ids=[
        "it gave nothing up",
        "another broker gave its request up",
        "it has heard of a later state since",
        "it has heard that the other joined",
        "it gave up what came after",
    ],
)
def test_a_leader_that_counts_too_few_for_another_reason_is_called_broken(
    dropped: dict[BrokerId, int], partition_epoch: int
) -> None:
    assert i8(reference_at(8, dropped), leader(partition_epoch)) == [
        "leader 0 counts [0], the controller (0, 1) and ()"
    ]


@pytest.mark.parametrize(
    ("by_metadata", "asked_epoch", "is_noted"), [(True, 4, True), (False, 4, False), (True, 3, False)]
)
def test_a_request_is_given_up_where_metadata_of_its_own_epoch_drops_it(
    by_metadata: bool, asked_epoch: int, is_noted: bool
) -> None:
    """An answer ends a request as well, and so does a new leader epoch; neither excuses anything."""
    reference = reference_at(8, {})
    reference.asked[ZERO] = request(7, asked_epoch)
    observed: Any = SimpleNamespace(broker=ZERO, high_watermark=5, shown_epoch=4, shown=5)
    found = replicas.check_claims(reference, leader(7), observed, SETTINGS, by_metadata=by_metadata)
    assert list(found) == []
    assert reference.dropped == ({ZERO: 7} if is_noted else {})
    assert reference.asked == {ZERO: None}


@pytest.mark.parametrize("has_records", [True, False])
def test_a_high_watermark_rises_under_min_isr_over_a_gap_of_compaction_and_no_further(has_records: bool) -> None:
    """I15: a read looks for the batch of the high watermark, and sets it to where that begins (UnifiedLog, 4.3.1)."""
    observed: Any = SimpleNamespace(
        broker=ZERO, high_watermark=9, shown_epoch=4, shown=5, has_records=lambda start, end: has_records
    )
    settings = PartitionSettings(min_isr=2)
    found = list(replicas.check_claims(reference_at(7, {}), leader(7), observed, settings, by_metadata=False))
    told = "the high watermark of leader 0 rose to 9 with ISR (0,)"
    assert found == ([("I15", told)] if has_records else [])


def test_a_compacted_log_knows_where_it_has_records() -> None:
    nothing: Any = None
    log: Any = SimpleNamespace(cleaning_count=0)
    observed = RetainedObservedLog(RetainedReferenceLog(0), nothing, log, (ZERO, 0), None)
    observed.gaps = {0, 1, 3}
    assert [observed.has_records(*each) for each in ((0, 2), (0, 3), (1, 1), (3, 5))] == [False, True, False, True]
    assert [log_of(ZERO).has_records(*each) for each in ((0, 1), (1, 1))] == [True, False]


@pytest.mark.parametrize(("agreed", "left"), [(4, {ONE: 5}), (5, {})])
def test_a_member_that_was_not_counted_is_excused_until_it_has_what_was_shown(
    agreed: int, left: dict[BrokerId, int]
) -> None:
    reference = reference_at(8, {})
    reference.committed, reference.uncounted = [None] * 6, {ONE: 5}
    reference.observed_logs = {ONE: SimpleNamespace(agree=lambda _committed: agreed)}
    reference.state.leader, reference.state.leader_epoch = ZERO, 4
    cluster: Any = SimpleNamespace(nodes={})
    replicas._note_uncounted(cluster, reference, reference.state)
    assert reference.uncounted == left


# I4 to I7, I29: before ELR a leader that lost its log's end goes on in its epoch, and others keep what it lost.

LOST: Final = {1: [range(2, 4)]}
"""The leader of epoch 1 lost offsets 2 and 3, and wrote others there in the same epoch."""


def log_of(broker: BrokerId, *entries: tuple[int, int]) -> ObservedLog:
    """A log with records of these epochs and values."""
    nothing: Any = None
    observed = ObservedLog(nothing, 0, broker)
    observed.entries = [Entry(epoch, value) for epoch, value in entries]
    return observed


def reference_of(observed: ObservedLog, *committed: tuple[int, int]) -> ReferenceLog:
    """What is committed, and one member's log."""
    reference = ReferenceLog(0)
    reference.observed_logs[observed.broker] = observed
    reference.committed = [Entry(epoch, value) for epoch, value in committed]
    reference.reused = dict(LOST)
    return reference


SHARED: Final = ((1, 0), (1, 1))


@pytest.mark.parametrize(
    ("log", "committed", "is_excused"),
    [
        ((*SHARED, (1, 2), (1, 3)), (*SHARED, (1, 12), (1, 13)), True),
        ((*SHARED, (1, 12), (1, 13)), (*SHARED, (1, 2), (1, 3)), True),
        ((*SHARED, (1, 2), (1, 3)), (*SHARED, (1, 2), (1, 13)), True),
        ((*SHARED, (0, 2)), (*SHARED, (1, 12)), True),
        ((*SHARED, (1, 12)), (*SHARED, (0, 2)), True),
        (SHARED, (*SHARED, (1, 12), (1, 13)), False),
        ((*SHARED, (1, 2), (1, 3)), (*SHARED, (1, 2), (1, 3), (1, 4)), False),
        ((*SHARED, (1, 2), (1, 3), (1, 4)), (*SHARED, (1, 2), (1, 3), (1, 14)), False),
        (((1, 0), (1, 1)), ((1, 0), (1, 11)), False),
        ((*SHARED, (2, 2)), (*SHARED, (3, 12)), False),
    ],
    ids=[
        "it keeps what its leader lost",
        "it has what another that leads now never heard of",
        "it keeps the second of the two",
        "it keeps what its leader lost of an epoch before",
        "it has what its leader wrote in the place of an epoch before",
        "it ends where its leader had lost something",
        "it ends above",
        "it differs above",
        "it differs below",
        "it differs there in other epochs",
    ],
)
def test_a_member_is_excused_where_its_leader_wrote_again_in_its_epoch_and_nowhere_else(
    log: tuple[tuple[int, int], ...], committed: tuple[tuple[int, int], ...], is_excused: bool
) -> None:
    observed = log_of(ONE, *log)
    reference = reference_of(observed, *committed)
    agreed = observed.agree(reference.committed)
    assert agreed < len(committed)
    assert reference.is_excused(ONE, agreed, reference.committed) is is_excused


@pytest.mark.parametrize(
    ("offset", "value", "is_excused"),
    [(1, 11, False), (2, 2, True), (3, 3, True), (4, 14, False), (5, 15, False), (4, 24, True)],
    ids=["below", "the first lost", "the last lost", "above", "at the end", "of a history that ended"],
)
def test_a_follower_may_show_what_another_took_the_place_of_where_its_leader_wrote_again(
    offset: int, value: int, is_excused: bool
) -> None:
    """I17, seed 1000045: it keeps a record of its leader's epoch, and the next leader has another in its place."""
    reference = reference_of(log_of(ONE), *SHARED, (1, 12), (1, 13), (2, 4))
    reference.former.add((4, 24))
    assert reference.may_follower_show(offset, value) is is_excused


@pytest.mark.parametrize(("seen", "lost"), [({1: ONE}, [12]), ({1: ONE, 2: ZERO}, [])], ids=["leader", "former leader"])
def test_a_leader_that_was_succeeded_takes_nothing_from_what_is_committed(
    seen: dict[int, BrokerId], lost: list[int]
) -> None:
    """An excused leader is taken for complete, as Kafka takes it; one that has not heard of its successor is not."""
    observed = log_of(ONE, *SHARED, (1, 2))
    reference = reference_of(observed, *SHARED, (1, 12))
    reference.leaders = seen
    cluster: Any = SimpleNamespace(now_ms=TimeMs(5))
    claim: Any = SimpleNamespace(leader_epoch=1)
    StepChecker(SETTINGS)._accept_incomplete(cluster, reference, observed, claim)
    assert [value for loss in reference.losses for value in loss.values] == lost
    assert len(reference.committed) == 3 - len(lost)


def led(leader: int, isr: tuple[int, ...], elr: tuple[int, ...], replicas: tuple[int, ...] = (0, 1)) -> Any:
    """The controller's state of a partition."""
    return SimpleNamespace(leader=leader, isr=isr, elr=elr, replicas=replicas, partition_epoch=1)


@pytest.mark.parametrize(
    ("states", "is_excused"),
    [
        ([], False),
        ([led(-1, (), (0, 1))], True),
        ([led(-1, (), (0, 1)), led(0, (0,), (1,))], True),
        ([led(-1, (), (0, 1)), led(0, (0,), ())], False),
        ([led(-1, (), (0, 1)), led(0, (0, 1), ()), led(0, (0,), (1,))], False),
        ([led(1, (1, 0), ()), led(0, (0,), (1,))], True),
    ],
    ids=[
        "it leads",
        "it has led",
        "another leads that was away",
        "it is not eligible any more",
        "it has copied that one's log",
        "another that copied it leads",
    ],
)
def test_a_former_replica_that_led_without_records_is_excused_until_it_has_copied_a_log(
    states: list[Any], is_excused: bool
) -> None:
    """S99 goes on: what it ended when it led, the next leader, which had not heard of it, still has and shows."""
    reference = ReferenceLog(0)
    for state in (led(0, (0,), (1,), (0, 2)), led(0, (0,), (1,)), led(1, (1,), (0,))):
        reference.learn(state)
    assert reference.is_excused(ONE, 0, reference.committed)
    assert reference.accept(ONE, 0) is Ground.FORMER_REPLICA
    for state in states:
        reference.learn(state)
    assert reference.is_excused(ONE, 0, reference.committed) is is_excused


def after_an_outage(end: FaultKind, then: Fault, loser: int = 0) -> Simulation:
    """Three brokers end at once, and broker 0 leads on in epoch 0; at 60 s it leaves a record without its followers."""
    options = quiet(6, DurationMs(130_000), rules_of("3.5"))
    options = attrs.evolve(with_zookeeper(options), partitions=1, produce_ms=DurationMs(200))
    at_ms, down_ms = TimeMs(20_000), DurationMs(20_000)
    ends = tuple(Fault(at_ms, end if each == loser else FaultKind.KILL, each, down_ms) for each in range(3))
    return Simulation(options, (*ends, then))


ISOLATED: Final = Fault(TimeMs(60_000), FaultKind.ISOLATE, 0, DurationMs(55_000))
KILLED: Final = attrs.evolve(ISOLATED, kind=FaultKind.KILL)


@pytest.mark.parametrize(
    ("end", "reused"), [(FaultKind.POWER_LOSS, {0: [range(159, 202)]}), (FaultKind.KILL, {})], ids=["loss", "no loss"]
)
def test_what_a_former_leader_lacks_is_no_loss_though_it_wrote_again_in_its_epoch_before(
    end: FaultKind, reused: dict[int, list[range]]
) -> None:
    """Leader 0 asks for a smaller ISR at 100 s, while broker 1 leads epoch 1 and has committed 240 records."""
    simulation = after_an_outage(end, ISOLATED)
    assert simulation.finish().findings == ()
    reference = simulation.checker.references[0]
    assert reference.reused == reused
    assert [loss.start_offset for loss in reference.losses] == [lost[0].start for lost in reused.values()]
    assert sorted(reference.leaders.items()) == [(0, ZERO), (1, ONE)]


def test_a_member_that_loses_records_by_no_hole_of_kafkas_is_found_after_one_of_these() -> None:
    """Broker 1 cuts 20 committed records of epoch 0 that were written after the loss, and is elected."""
    simulation = after_an_outage(FaultKind.POWER_LOSS, KILLED)
    simulation.run_until(60_000)
    assert simulation.findings == ()
    node = simulation.cluster.nodes[ONE]
    log = node.logs[0]
    log.cut(Offset(log.log.log_end_offset - 20), node.now_ms)
    outcome = simulation.finish()
    assert {"I6", "I7", "I9"} <= {finding.code for finding in outcome.findings}
    assert [loss.start_offset for loss in simulation.checker.references[0].losses] == [159]


# I6: before ELR a member that lost its end stays in the ISR, and may lack that end until it has copied it again.


def test_a_member_lacks_only_what_was_committed_when_it_lost_its_end() -> None:
    observed = log_of(ONE, *SHARED)
    reference = reference_of(observed, *SHARED, (1, 2), (1, 3))
    reference.incomplete[ONE] = 3
    reference.note_copied()
    assert reference.is_excused(ONE, observed.agree(reference.committed), reference.committed)
    observed.entries.append(Entry(1, 2))
    assert not reference.is_excused(ONE, observed.agree(reference.committed), reference.committed)
    reference.note_copied()
    del observed.entries[1:]
    observed.agreed = 1
    assert not reference.is_excused(ONE, observed.agreed, reference.committed)


def test_a_member_that_has_copied_its_lost_end_may_not_lose_it_again() -> None:
    """All brokers end at 20 s, broker 1 by a loss of power; all stay in sync, and it copies 43 records when back."""
    simulation = after_an_outage(FaultKind.POWER_LOSS, ISOLATED, loser=1)
    simulation.run_until(40_020)
    reference = simulation.checker.references[0]
    assert (reference.incomplete, len(reference.observed_logs[ONE].entries)) == ({ONE: 201}, 158)
    simulation.run_until(50_000)
    assert (reference.incomplete, simulation.findings) == ({}, ())
    log = simulation.cluster.nodes[ONE].logs[0]
    log.cut(Offset(190), simulation.cluster.nodes[ONE].now_ms)
    assert "I6" in {finding.code for finding in simulation.finish().findings}


# I11, I12, I21: with ZooKeeper a LeaderAndIsr request that comes again after StopReplica makes a replica anew.

STRAY: Final = 1 << 40
"""The value that broker 1 takes in epoch 0 after its log was deleted."""


def after_a_move(*, is_late: bool = True) -> Simulation:
    """Broker 1 leads in epoch 0, is removed at 20 s, added again at 60 s, and leads then.

    Broker 0 is the controller. Its first LeaderAndIsr request arrives once more at 30 s, if `is_late`, and broker 1 is
    sent a record then.
    """
    options = quiet(6, DurationMs(130_000), rules_of("3.5"))
    options = attrs.evolve(with_zookeeper(options), brokers=4, partitions=1, produce_ms=DurationMs(200))
    options = attrs.evolve(options, assignment=(tuple(BrokerId(broker) for broker in (1, 2, 3)),))
    moves = tuple(Fault(TimeMs(at_ms), FaultKind.REASSIGN) for at_ms in (20_000, 60_000))
    simulation = Simulation(options, moves)
    first: list[LeaderAndIsr] = []

    def send_again(cluster: Cluster, node: NodeId, message: Message, out: Outbox) -> None:
        if isinstance(message, LeaderAndIsr) and node == NodeId(ONE) and not first:
            first.append(message)
        elif node == NodeId(ZERO) and cluster.now_ms >= 30_000 and is_late and len(first) == 1:
            first.append(first[0])
            out.send(Address(NodeId(ONE)), first[0])

    simulation.cluster.watches.append(send_again)
    simulation.run_until(31_000)
    batch = build_batch(BatchSpec(), (Record(Offset(0), TimeMs(0), None, STRAY.to_bytes(8, "big")),))
    simulation.cluster.deliver(NodeId(1), Produce(0, 0, 0, batch))
    return simulation


def test_a_replica_that_leads_its_old_epoch_once_more_is_named_when_it_is_a_member_again() -> None:
    """Its record at offset 0 is of epoch 0 as the one that is committed there: no epoch shows the difference."""
    simulation = after_a_move()
    assert simulation.finish().findings == ()
    reference = simulation.checker.references[0]
    assert (reference.reused, reference.revived) == ({0: [range(202)]}, {0})
    assert [(loss.start_offset, loss.election.leader, loss.election.ground) for loss in reference.losses] == [
        (0, ONE, Ground.REVIVED)
    ]
    assert reference.committed[0].value == STRAY
    assert len(simulation.durability().lost) == 1


def test_a_replica_that_no_late_request_made_anew_has_no_such_excuse() -> None:
    """Broker 1 refuses the record, and has a log like the others' when it is a member again."""
    simulation = after_a_move(is_late=False)
    assert simulation.finish().findings == ()
    reference = simulation.checker.references[0]
    assert (reference.reused, reference.revived, reference.losses) == ({}, set(), [])


def test_a_member_that_loses_records_is_found_beside_a_replica_that_was_made_anew() -> None:
    """Broker 2 cuts 20 committed records while broker 1 is away."""
    simulation = after_a_move()
    simulation.run_until(50_000)
    node = simulation.cluster.nodes[BrokerId(2)]
    log = node.logs[0]
    log.cut(Offset(log.log.log_end_offset - 20), node.now_ms)
    assert {"I16", "I6"} <= {finding.code for finding in simulation.finish().findings}


@pytest.mark.parametrize(
    ("change", "revived"),
    [
        ({}, {1}),
        ({"is_after_deletion": False}, set()),
        ({"partition_epoch": 5}, set()),
        ({"leader": ZERO}, set()),
        ({"release": "4.1"}, set()),
    ],
    ids=["made anew", "its log was not deleted", "told of after its removal", "another led the epoch", "with ELR"],
)
def test_a_leader_is_made_anew_only_by_what_was_told_before_its_removal(
    change: dict[str, Any], revived: set[int]
) -> None:
    observed = log_of(ONE)
    observed.is_after_deletion = change.get("is_after_deletion", True)
    claim: Any = SimpleNamespace(leader_epoch=1, partition_epoch=change.get("partition_epoch", 4))
    observed.claim = claim
    reference = ReferenceLog(0)
    reference.leaders = {1: change.get("leader", ONE)}
    reference.moved_away = {ONE: 5}
    rules = rules_of(change.get("release", "3.5"))
    checker = StepChecker(attrs.evolve(SETTINGS, rules=rules))
    checker._note_revived(reference, observed, LogChange(0, True, True, [Entry(1, 0), Entry(1, 1)]))
    assert reference.revived == revived
    assert reference.reused == {epoch: [range(2)] for epoch in revived}


@pytest.mark.parametrize(("revived", "expected"), [({1}, 0), (set(), 1)], ids=["made anew", "not made anew"])
def test_only_what_a_replica_wrote_that_was_made_anew_comes_before_older_sequences(
    revived: set[int], expected: int
) -> None:
    reference = ReferenceLog(0)
    reference.reused, reference.revived = {1: [range(1)]}, revived
    reference.committed = [Entry(1, 7, 1, 8), Entry(0, 1, 1, 1), Entry(0, 2, 1, 2)]
    findings = check_history([], [], {0: reference}, TimeMs(0), is_idempotent=True)
    assert [finding.code for finding in findings] == ["I21"] * expected
    reference.committed.append(Entry(0, 4, 1, 4))
    assert len(check_history([], [], {0: reference}, TimeMs(0), is_idempotent=True)) == expected + 1
