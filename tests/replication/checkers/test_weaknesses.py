"""Kafka's own weaknesses: random runs are kept from them, and a run that has one on purpose says so first.

S99 and S100 are weaknesses of the newest release; without ELR (KIP-966) a member of the ISR leads on without what it
lost.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final

import attrs
import pytest

from broker.ids import BrokerId, LeaderEpoch
from broker.units import DurationMs, TimeMs
from replication.checkers import replicas
from replication.checkers.reference_log import ReferenceLog
from replication.checkers.retention_model import RetainedObservedLog, RetainedReferenceLog
from replication.rules.settings import PartitionSettings
from replication.rules.switches import CURRENT, SOUND, rules_of, sound, without
from replication.simulation import Fault, FaultKind, Options, Simulation, harsh, quiet, run, swarm, varied
from replication.simulation.options import with_partition_settings
from replication.simulation.report import options_lines

MINUTE: Final = DurationMs(60_000)
OPEN: Final = "with open weaknesses of Kafka (scenarios S99, S100), by which invariants may break"


@pytest.mark.parametrize("drawn", [quiet, swarm, harsh, varied])
def test_every_kind_of_run_has_sound_rules(drawn: Any) -> None:
    assert drawn(1, MINUTE).settings.rules == SOUND == sound(CURRENT)
    assert OPEN not in options_lines(drawn(1, MINUTE))


@pytest.mark.parametrize("name", ["elr_holds_replicas_only", "known_state_keeps_request"])
def test_a_run_with_a_weakness_on_purpose_says_so_first(name: str) -> None:
    assert OPEN in options_lines(swarm(1, MINUTE, without(SOUND, name)))


@pytest.mark.parametrize("drawn", [swarm, harsh, varied])
def test_a_strict_run_without_elr_loses_no_records(drawn: Any) -> None:
    for seed in range(3):
        options: Options = drawn(seed, MINUTE, sound(rules_of("3.9")))
        outcome = run(attrs.evolve(options, is_strict=True))
        assert (outcome.loss_count, outcome.findings) == (0, ())
        assert varied(seed, MINUTE, sound(rules_of("3.9"))).is_strict
    assert "strict: no broker loses records, as without ELR (KIP-966) acknowledged ones would be lost" in options_lines(
        swarm(1, MINUTE, sound(rules_of("3.9")))
    )


def test_what_a_loss_breaks_without_elr_is_no_finding_of_a_run_that_is_not_strict() -> None:
    """Broker 2, the last in sync, comes back with an empty disk and leads: 19 records that all had are lost."""
    kinds = (FaultKind.ISOLATE, FaultKind.ISOLATE, FaultKind.WIPE)
    plan = tuple(
        Fault(TimeMs(at_ms), kind, broker, DurationMs(for_ms))
        for broker, (kind, at_ms, for_ms) in enumerate(
            zip(kinds, (5_000, 5_000, 20_000), (30_000, 30_000, 5_000), strict=True)
        )
    )
    options = attrs.evolve(quiet(1, MINUTE, without(SOUND, "elr", "strict_min_isr")), is_strict=False)
    options = with_partition_settings(options, attrs.evolve(options.settings, min_isr=1))
    outcome = Simulation(options, plan).finish()
    assert outcome.findings == ()
    assert outcome.durability.lost_by_all
    assert "what that breaks without ELR (KIP-966) is no finding" in options_lines(options)[-1]


@pytest.mark.parametrize("has_records", [True, False])
def test_a_high_watermark_rises_under_min_isr_over_a_gap_of_compaction_and_no_further(has_records: bool) -> None:
    """I15: a read looks for the batch of the high watermark, and sets it to where that begins (UnifiedLog, 4.3.1)."""
    zero: Final = BrokerId(0)
    observed: Any = SimpleNamespace(
        broker=zero, high_watermark=9, shown_epoch=4, shown=5, has_records=lambda start, end: has_records
    )
    leader: Any = SimpleNamespace(
        broker=zero, leader_epoch=LeaderEpoch(4), partition_epoch=7, pending=None, isr=(zero,), replica_count=3
    )
    found = list(replicas.check_claims(ReferenceLog(0), leader, observed, PartitionSettings(min_isr=2)))
    assert found == ([("I15", "the high watermark of leader 0 rose to 9 with ISR (0,)")] if has_records else [])


def test_a_compacted_log_knows_where_it_has_records() -> None:
    nothing: Any = None
    log: Any = SimpleNamespace(cleaning_count=0)
    observed = RetainedObservedLog(RetainedReferenceLog(0), nothing, log, (BrokerId(0), 0), None)
    observed.gaps = {0, 1, 3}
    assert [observed.has_records(*each) for each in ((0, 2), (0, 3), (1, 1), (3, 5))] == [False, True, False, True]
