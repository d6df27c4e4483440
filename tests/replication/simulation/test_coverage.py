"""What a small campaign must pass through, and that the measurement itself changes nothing and can fail."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Final

import attrs
import pytest

from broker.units import DurationMs
from replication.checkers import Rare
from replication.simulation import FaultKind, Options, Simulation, harsh, run, varied
from replication.simulation.fault import OF_BROKERS
from replication.simulation.retention import RETENTION_KINDS
from tests.replication.simulation.coverage import Coverage, run_covered

MINUTE: Final = DurationMs(60_000)
CAMPAIGN: Final[tuple[Options, ...]] = (
    *(varied(seed, MINUTE) for seed in range(20)),
    *(harsh(seed, DurationMs(120_000)) for seed in (5, 17)),
)
TRANSITIONS: Final = {"registration": 12, "lifecycle": 9, "replica": 15, "partition": 10, "reassignment": 4, "write": 7}
"""How many transitions of each machine of current Kafka the campaign takes at least."""
ERRORS: Final = {
    ("AlterPartitionResponse", "INVALID_UPDATE_VERSION"),
    ("AlterPartitionResponse", "NEW_LEADER_ELECTED"),
    ("FetchResponse", "FENCED_LEADER_EPOCH"),
    ("FetchResponse", "KAFKA_STORAGE_ERROR"),
    ("FetchResponse", "UNKNOWN_TOPIC_OR_PARTITION"),
    ("FetchResponse", "UNKNOWN_LEADER_EPOCH"),
    ("ProduceResponse", "NOT_ENOUGH_REPLICAS"),
    ("ProduceResponse", "NOT_LEADER_OR_FOLLOWER"),
    ("ProduceResponse", "OUT_OF_ORDER_SEQUENCE_NUMBER"),
    ("ProduceResponse", "REQUEST_TIMED_OUT"),
    ("ProduceResponse", "UNKNOWN_TOPIC_OR_PARTITION"),
}
SELDOM: Final = {
    Rare.CUT_BELOW_HIGH_WATERMARK,
    Rare.ISR_INELIGIBLE,
    Rare.ISR_STALE_BROKER,
    Rare.FETCH_OUT_OF_RANGE,
    Rare.WRITE_AFTER_APPEND,
    Rare.READ_NOT_AVAILABLE,
}
"""The rare states that only a longer campaign reaches; the first of them is reached in `test_runs`."""


def missing(coverage: Coverage) -> list[str]:
    """Return what the floor asks for and a campaign did not reach."""
    found = []
    for name, least in TRANSITIONS.items():
        taken = sum(machine == name for machine, _, _ in coverage.transitions)
        if taken < least:
            found.append(f"{name}: {taken} of {least} transitions")
    found += [f"{answer} {error}" for answer, error in sorted(ERRORS) if not coverage.errors[answer, error]]
    found += [state.value for state in Rare if state not in SELDOM and not coverage.rare[state]]
    for kind in FaultKind:
        struck = {role for name, role in coverage.faults if name == kind.name}
        if kind not in RETENTION_KINDS and not struck:
            found.append(f"{kind.name} struck nobody")
    roles = Counter(role for _, role in coverage.faults.elements())
    found += [
        f"no fault struck one that is {role}" for role in ("leader", "follower", "idle", "down") if not roles[role]
    ]
    return found


@pytest.mark.deep
def test_a_small_campaign_reaches_the_floor() -> None:
    total = Coverage()
    for options in CAMPAIGN:
        outcome = run_covered(Simulation(options), total)
        assert outcome.findings == (), (options.seed, outcome.findings[0])
    assert missing(total) == []


def test_a_campaign_without_faults_does_not_reach_it() -> None:
    assert len(missing(Coverage())) > 50
    calm = attrs.evolve(varied(3, DurationMs(10_000)), fault_ms=())
    coverage = Coverage()
    run_covered(Simulation(calm), coverage)
    assert "POWER_LOSS struck nobody" in missing(coverage)
    assert "another leader was elected from the ISR" in missing(coverage)


def test_measuring_changes_no_run_and_leaves_no_trace_function() -> None:
    options = varied(2, DurationMs(20_000))
    before, first, second = sys.gettrace(), Coverage(), Coverage()
    covered = run_covered(Simulation(options), first)
    assert sys.gettrace() is before
    assert covered.digest == run(options).digest
    run_covered(Simulation(options), second)
    assert first == second


def test_a_fault_is_counted_by_whom_it_strikes() -> None:
    options = varied(2, DurationMs(30_000))
    coverage = Coverage()
    outcome = run_covered(Simulation(options), coverage)
    assert sum(coverage.faults.values()) == len(outcome.plan)
    for kind, role in coverage.faults:
        assert (role == "cluster") == (FaultKind[kind] not in OF_BROKERS)
