"""Whole runs in which logs are cut and compacted: nothing breaks, and every code and rare state is passed through."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Final

import attrs
import pytest

from broker.cli import run as run_command
from broker.error_codes import ErrorCode
from broker.units import DurationMs, SizeBytes
from replication.checkers import Rare
from replication.cli.simulate import simulate
from replication.groups import GroupsExtension, with_groups
from replication.retention import AutoOffsetReset, DeleteRecordsResponse, Retention
from replication.roles.messages import (
    CONTROLLER,
    AlterPartitionResponse,
    BrokerHeartbeatResponse,
    ConsumerFetchResponse,
    FetchResponse,
    ListOffsetsResponse,
    Message,
    NodeId,
    ProduceResponse,
)
from replication.roles.outbox import Outbox
from replication.roles.states.replica_role import ReplicaRole
from replication.rules.switches import rules_of
from replication.simulation import Options, Simulation, draw_plan, harsh, quiet, run, swarm, varied
from replication.simulation.cluster import Cluster
from replication.simulation.options import with_partition_settings
from replication.simulation.retention import drawn_retention, with_retention

MINUTE: Final = DurationMs(60_000)
TEN_MINUTES: Final = DurationMs(600_000)


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(2, 6))])
def test_a_swarm_of_faults_breaks_nothing_in_logs_that_are_kept(seed: int) -> None:
    outcome = run(with_retention(swarm(seed, MINUTE)))
    assert outcome.findings == (), outcome.findings[0]


def _uncleanly(options: Options) -> Options:
    settings = attrs.evolve(options.settings, unclean_election=True)
    return attrs.evolve(with_partition_settings(options, settings), is_strict=False)


# Runs that once broke an invariant, with what was wrong.
PAST_FAILURES: Final = (
    (
        _uncleanly(swarm(2, DurationMs(180_000))),
        "a deposed leader answers DeleteRecords by its own metadata, and K4 held it to the ISR of the present one",
    ),
    (
        swarm(8, TEN_MINUTES),
        "a follower that parts from its leader below the leader's start was held against what had been let go (I11)",
    ),
    (
        harsh(8, TEN_MINUTES),
        "such a follower joins the ISR before it has heard of its leader's start (I6, of the checker)",
    ),
    (harsh(21, TEN_MINUTES), "what one history had let go was held for let go in the next one (I6, of the checker)"),
    (harsh(47, TEN_MINUTES), "a gap was filled from the history after an unclean election (I11, of the checker)"),
    (swarm(19, TEN_MINUTES), "a producer whose records have expired is unknown, any sequence is taken (I21, KIP-360)"),
    (swarm(57, TEN_MINUTES), "a consumer that found a new place behind its own was held for going back (K8)"),
)


@pytest.mark.deep
@pytest.mark.parametrize(("options", "scenario"), PAST_FAILURES)
def test_what_broke_once_holds_now(options: Options, scenario: str) -> None:
    outcome = run(with_retention(options))
    assert outcome.findings == (), f"{outcome.findings[0]}; it was: {scenario}"


def test_groups_pass_over_what_has_expired() -> None:
    options = with_retention(with_groups(swarm(3, MINUTE)))
    outcome = run(options, extension=GroupsExtension.drawn(options, 2))
    assert outcome.findings == (), outcome.findings[0]


def test_logs_are_cut_and_compacted_and_nothing_is_lost_without_faults() -> None:
    retention = Retention(compacts=True, retention_bytes=SizeBytes(500), segment_bytes=SizeBytes(500))
    outcome = run(with_retention(quiet(5, DurationMs(25_000)), retention))
    assert outcome.is_clean
    assert outcome.durability.lost == ()
    assert outcome.retention is not None
    assert outcome.retention.expired_count > 5
    assert outcome.retention.superseded_count > 5
    assert outcome.retention.expired_count + outcome.retention.superseded_count < outcome.durability.acked_count


def test_retention_moves_no_fault_of_a_run_without_it() -> None:
    options = harsh(9, MINUTE)
    plan = draw_plan(with_retention(options))
    assert set(draw_plan(options)) < set(plan)


def test_every_kind_of_retention_is_drawn() -> None:
    drawn = [drawn_retention(seed) for seed in range(60)]
    assert {(each.compacts, each.deletes) for each in drawn} == {(False, True), (True, True), (True, False)}
    assert {each.reset for each in drawn} == set(AutoOffsetReset)


def test_consumers_that_come_too_late_are_counted_apart_from_losses() -> None:
    options = attrs.evolve(quiet(1, DurationMs(15_000)), produce_ms=DurationMs(20), consumers=1)
    retention = Retention(
        retention_bytes=SizeBytes(1_000), segment_bytes=SizeBytes(500), reset=AutoOffsetReset.EARLIEST
    )
    outcome = run(with_retention(options, retention))
    assert outcome.is_clean
    assert outcome.durability.lost == ()
    assert outcome.retention is not None
    assert outcome.retention.unread_count > 100


# What a fixed set of runs passes through.

COVERAGE: Final = (
    with_retention(harsh(148, DurationMs(480_000))),
    with_retention(harsh(83, DurationMs(480_000))),
    harsh(211, DurationMs(180_000)),
    harsh(241, DurationMs(180_000)),
    varied(124, DurationMs(180_000)),
    with_retention(swarm(1, DurationMs(300_000), rules_of("3.6"))),
)
"""The last under the rules of 3.6, whose high watermark rises under min ISR."""

_NEVER: Final = {
    (ProduceResponse, ErrorCode.INVALID_REQUIRED_ACKS): "clients send acks -1, 0 or 1",
    (ProduceResponse, ErrorCode.KAFKA_STORAGE_ERROR): "no directory fails in random runs; the scenario S40 has it",
    (FetchResponse, ErrorCode.KAFKA_STORAGE_ERROR): "as for ProduceResponse",
    (ConsumerFetchResponse, ErrorCode.KAFKA_STORAGE_ERROR): "as for ProduceResponse",
    (
        AlterPartitionResponse,
        ErrorCode.NOT_CONTROLLER,
    ): "the metadata log outlives its controller, so no leader knows more than it",
    (AlterPartitionResponse, ErrorCode.INVALID_REQUEST): "no leader asks for an ISR without itself, or twice the same",
    (AlterPartitionResponse, ErrorCode.UNKNOWN_TOPIC_ID): "no topic is deleted in these runs; the scenario S42 does it",
}
"""Answers that the model can give and random runs never do, with the reason."""

_ANSWERED: Final = {
    (ProduceResponse, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    (ProduceResponse, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    (ProduceResponse, ErrorCode.REQUEST_TIMED_OUT),
    (ProduceResponse, ErrorCode.NOT_ENOUGH_REPLICAS),
    (ProduceResponse, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND),
    (ProduceResponse, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
    (FetchResponse, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    (FetchResponse, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    (FetchResponse, ErrorCode.OFFSET_OUT_OF_RANGE),
    (FetchResponse, ErrorCode.FENCED_LEADER_EPOCH),
    (FetchResponse, ErrorCode.UNKNOWN_LEADER_EPOCH),
    (ConsumerFetchResponse, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    (ConsumerFetchResponse, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    (ConsumerFetchResponse, ErrorCode.OFFSET_OUT_OF_RANGE),
    (ConsumerFetchResponse, ErrorCode.OFFSET_NOT_AVAILABLE),
    (AlterPartitionResponse, ErrorCode.FENCED_LEADER_EPOCH),
    (AlterPartitionResponse, ErrorCode.INVALID_UPDATE_VERSION),
    (AlterPartitionResponse, ErrorCode.NEW_LEADER_ELECTED),
    (AlterPartitionResponse, ErrorCode.INELIGIBLE_REPLICA),
    (AlterPartitionResponse, ErrorCode.STALE_BROKER_EPOCH),
    (BrokerHeartbeatResponse, ErrorCode.STALE_BROKER_EPOCH),
    (DeleteRecordsResponse, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    (DeleteRecordsResponse, ErrorCode.OFFSET_OUT_OF_RANGE),
    (DeleteRecordsResponse, ErrorCode.POLICY_VIOLATION),
    (DeleteRecordsResponse, ErrorCode.REQUEST_TIMED_OUT),
}
"""Answers with an error that the fixed runs give."""

_NEVER_A_PART: Final = {
    ReplicaRole.NONE: "a broker without a part has no role",
    ReplicaRole.TRUNCATING: "only followers before 2.7 ask for the end of an epoch first",
}


class Seen:
    """What runs passed through."""

    def __init__(self) -> None:
        self.rare: Counter[Rare] = Counter()
        self.answers: Counter[tuple[type, ErrorCode]] = Counter()
        self.parts: set[ReplicaRole] = set()

    def watch(self, cluster: Cluster, node: NodeId, _message: Message, out: Outbox) -> None:
        """Note what a node has sent, and what it is."""
        for _, each in out.sent:
            if isinstance(each, FetchResponse):
                self.answers[FetchResponse, each.answer.error] += 1
            elif isinstance(each, AlterPartitionResponse):
                self.answers[AlterPartitionResponse, each.altered.error] += 1
            elif isinstance(
                each,
                ProduceResponse
                | ConsumerFetchResponse
                | BrokerHeartbeatResponse
                | ListOffsetsResponse
                | DeleteRecordsResponse,
            ):
                self.answers[type(each), each.error] += 1
        role = next((each.role for broker, each in cluster.nodes.items() if broker == node), None)
        if node < CONTROLLER and role is not None:
            self.parts.update(held.replica_role for held in role.roles.values())


@cache
def seen() -> Seen:
    found = Seen()
    for options in COVERAGE:
        simulation = Simulation(options)
        simulation.cluster.watches.append(found.watch)
        found.rare.update(simulation.finish().rare)
    return found


@pytest.mark.deep
def test_a_fixed_set_of_runs_passes_through_every_rare_state() -> None:
    assert [state for state in Rare if not seen().rare[state]] == []


@pytest.mark.deep
def test_followers_are_told_that_logs_part_and_that_they_are_fenced() -> None:
    assert seen().rare[Rare.DIVERGED] > 5
    assert seen().rare[Rare.FETCH_FENCED] > 5


@pytest.mark.deep
def test_a_fixed_set_of_runs_gives_every_answer_that_random_runs_can_give() -> None:
    errors = {answer for answer, count in seen().answers.items() if count and answer[1] is not ErrorCode.NONE}
    assert errors >= _ANSWERED, _ANSWERED - errors
    assert errors <= _ANSWERED | {(ListOffsetsResponse, each) for each in ErrorCode}, errors - _ANSWERED
    assert not errors & set(_NEVER)


@pytest.mark.deep
def test_a_fixed_set_of_runs_has_brokers_in_every_part() -> None:
    assert {state for state in ReplicaRole if state not in seen().parts} == set(_NEVER_A_PART)


# The command.


def test_retention_is_chosen_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--quiet", "--minutes", "0.3", "--compact", "--retention-ms", "5000", "--reset", "earliest"]
    assert run_command(simulate, "simulate", arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[4].startswith("cleanup.policy compact,delete, retention.ms 5000, retention.bytes -1, ")
    assert lines[4].endswith("auto.offset.reset earliest")
    assert any(line.startswith("expired: ") for line in lines)


def test_the_seed_may_draw_retention(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(simulate, "simulate", ["--swarm", "--seed", "3", "--minutes", "0.5", "--retention"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[4] == str(drawn_retention(3))
    assert "delete_records every 40000 ms" in lines[5]


def test_what_is_drawn_cannot_be_set_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(simulate, "simulate", ["--retention", "--compact"]) == 2
    told = "simulate: --retention draws everything from the seed; it is not given beside what it draws\n"
    assert capsys.readouterr().err == told


@pytest.mark.deep
def test_a_broken_run_is_had_again_with_the_same_retention(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--swarm", "--seed", "1", "--minutes", "1", "--rules", "0.10.2", "--compact", "--retention-bytes", "9"]
    assert run_command(simulate, "simulate", arguments) == 1
    again = "again: brokerside simulate --swarm --minutes 1 --kafka 0.10.2 --retention-bytes 9 --compact --seed 1"
    assert again in capsys.readouterr().out.splitlines()
