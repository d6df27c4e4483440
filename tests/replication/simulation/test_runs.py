"""Whole runs: nothing breaks under current rules, the same seed is the same history, and bad input is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import attrs
import pytest

from broker.error_codes import ErrorCode
from broker.errors import UsageError
from broker.ids import BrokerId, Offset
from broker.units import DurationMs, TimeMs
from log.batches.build import BatchSpec, build_batch
from log.record import Record
from replication.checkers import Finding
from replication.roles.leader import LeaderRole
from replication.roles.messages import Address, NodeId, Produce, ProduceExpired, ProduceResponse
from replication.roles.outbox import Outbox
from replication.rules.settings import Moment
from replication.simulation import Fault, FaultKind, NetworkOptions, Options, draw_plan, harsh, quiet, run, swarm
from replication.simulation.cluster import Cluster
from replication.simulation.history import Trace

MINUTE = DurationMs(60_000)
THREE_MINUTES = DurationMs(180_000)
TEN_MINUTES = DurationMs(600_000)


@pytest.mark.parametrize("seed", range(6))
def test_a_swarm_of_faults_breaks_nothing(seed: int) -> None:
    outcome = run(swarm(seed, MINUTE))
    assert outcome.findings == (), outcome.findings[0]
    assert outcome.event_count > 1_000


@pytest.mark.parametrize("seed", range(4))
def test_every_fault_at_once_breaks_nothing(seed: int) -> None:
    outcome = run(harsh(seed, MINUTE))
    assert outcome.findings == (), outcome.findings[0]
    assert len(outcome.plan) > 1


def test_without_faults_every_write_is_acknowledged_and_nothing_is_lost() -> None:
    outcome = run(quiet(1, DurationMs(20_000)))
    assert outcome.is_clean
    assert outcome.durability.acked_count > 40
    assert outcome.durability.lost == ()
    assert outcome.unclean_count == outcome.loss_count == 0


def test_the_same_seed_is_the_same_history() -> None:
    options = swarm(3, DurationMs(30_000))
    first, second = run(options), run(options)
    assert first.digest == second.digest
    assert first.lines == second.lines


@pytest.mark.deep
def test_the_history_is_the_same_whatever_the_seed_of_hashes() -> None:
    code = (
        "from broker.units import DurationMs; from replication.simulation import harsh, run, swarm;"
        "print(run(harsh(5, DurationMs(20_000))).digest, run(swarm(6, DurationMs(40_000))).digest)"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    here = (run(harsh(5, DurationMs(20_000))), run(swarm(6, DurationMs(40_000))))
    assert digests == {" ".join(outcome.digest for outcome in here) + "\n"}


@pytest.mark.deep
def test_without_asserts_nothing_is_run() -> None:
    code = (
        "from broker.units import DurationMs; from replication.simulation import quiet, run;"
        "run(quiet(1, DurationMs(1_000)))"
    )
    told = subprocess.run([sys.executable, "-O", "-c", code], capture_output=True, text=True, check=False)
    assert told.returncode == 1
    assert "a simulation needs its asserts; run Python without -O" in told.stderr


def test_a_plan_of_ones_own_is_what_happens() -> None:
    plan = (Fault(TimeMs(5_000), FaultKind.KILL, 0, DurationMs(20_000)),)
    outcome = run(quiet(1, MINUTE), plan)
    assert outcome.is_clean
    told = [line.split("ms  ", 1)[1] for line in outcome.lines]
    assert "broker 0 dies, down for 20000 ms" in told
    assert "partition 0: leader 1 (epoch 1), ISR 1,2, OSR 0, ELR none" in told


def test_leaving_a_kind_of_fault_out_moves_no_other() -> None:
    options = harsh(9, MINUTE)
    fewer = attrs.evolve(options, fault_ms=tuple(row for row in options.fault_ms if row[0] is not FaultKind.KILL))
    assert draw_plan(fewer) == tuple(fault for fault in draw_plan(options) if fault.kind is not FaultKind.KILL)


def test_a_cluster_that_cannot_become_whole_says_what_is_missing() -> None:
    # The broker comes back at once, but its former life's session stands for 9 s.
    options = attrs.evolve(quiet(1, DurationMs(10_000)), heal_ms_max=DurationMs(1))
    plan = (Fault(TimeMs(9_500), FaultKind.WIPE, 2, DurationMs(60_000)),)
    findings = run(options, plan).findings
    assert [finding.code for finding in findings] == ["L"]
    assert "broker 2 is not unfenced in its present life (L6)" in findings[0].what


class Unfinished:
    """A further part of a run that never recovers."""

    def join(self, cluster: Cluster) -> None: ...

    def missing(self, cluster: Cluster) -> str | None:
        return "group 7 is not stable (L8)"

    def findings(self, cluster: Cluster) -> tuple[Finding, ...]:
        return ()


def test_a_run_whose_extension_does_not_recover_says_so() -> None:
    options = attrs.evolve(quiet(1, DurationMs(4_000)), heal_ms_max=DurationMs(2_000))
    findings = run(options, (), extension=Unfinished()).findings
    assert [(finding.code, finding.what) for finding in findings] == [("L", "group 7 is not stable (L8)")]


def test_a_write_that_expires_takes_no_other_clients_write_along() -> None:
    cluster = Cluster(quiet(1, MINUTE), Trace())
    cluster.begin()
    cluster.run_until(TimeMs(5_000))
    role = cluster.nodes[BrokerId(0)].role
    assert role is not None
    part, out = role.roles[0], Outbox()
    assert isinstance(part, LeaderRole)
    first, second = Address(NodeId(2_500)), Address(NodeId(2_501))
    for client in (first, second):
        now_ms = cluster.options.wall_clock_ms
        batch = build_batch(BatchSpec(), (Record(Offset(0), now_ms, None, b"value"),))
        write = Produce(0, 7, -1, batch)
        assert part.append(write, client, Moment(now_ms, role.image.brokers), out) is ErrorCode.NONE
    out.sent.clear()
    part.on_write_expired(ProduceExpired(0, 7, first), out)
    assert [(to, told.error) for to, told in out.sent if isinstance(told, ProduceResponse)] == [
        (first, ErrorCode.REQUEST_TIMED_OUT)
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"brokers": 0}, "the number of brokers is 0; allowed are whole numbers from 1 to 100"),
        ({"replication_factor": 4}, "the replication factor is 4; allowed are whole numbers from 1 to 3"),
        ({"racks": 9}, "the number of racks is 9; allowed are whole numbers from 1 to 3"),
        (
            {"network": NetworkOptions(delay_ms_max=-1)},
            "the greatest delay in ms is -1; allowed are whole numbers from 1 to 60000",
        ),
    ],
)
def test_impossible_options_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        attrs.evolve(Options(seed=1), **changes)
    assert str(refused.value) == message
