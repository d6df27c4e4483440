"""Run a scenario with one protocol, and report its result.

Source: ours; names of latencies are those of Java's consumer metrics.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from broker.releases import NEWEST, Release
from replication.checkers import Finding
from replication.groups.alone.ledger import Mark, OwnershipSpan
from replication.groups.alone.scenario import SingleGroupScenario
from replication.groups.alone.simulation import GroupSimulation
from replication.groups.client.protocols import GroupProtocol


@attrs.frozen(kw_only=True)
class GroupRun:
    """Report one scenario run with one protocol; times are in ms, and sums over partitions are named so."""

    scenario: SingleGroupScenario
    protocol: GroupProtocol
    assignor: str
    event_count: int
    rebalance_count: int
    rebalance_latency_avg: float
    rebalance_latency_max: int
    rebalance_latency_total: int
    rebalance_total: int
    failed_rebalance_total: int
    unowned_ms: int
    unowned_ms_max: int
    shared_ms: int
    move_count: int
    least_move_count: int
    return_count: int
    read_count: int
    duplicate_count: int
    lag_max: int
    commits: Mapping[str, int]
    departures: Mapping[str, int]
    deaths: tuple[Mark, ...]
    settled_ms: int | None
    findings: tuple[Finding, ...]
    spans: tuple[OwnershipSpan, ...]
    marks: tuple[Mark, ...]
    generations_ms: tuple[int, ...]

    @property
    def is_clean(self) -> bool:
        """Return whether every invariant held."""
        return not self.findings

    def figures(self) -> dict[str, Any]:
        """Return the counts for JSON: all but the history."""
        left_out = ("scenario", "protocol", "findings", "spans", "marks", "generations_ms", "deaths")
        names = (field.name for field in attrs.fields(GroupRun) if field.name not in left_out)
        return {
            "protocol": self.protocol.value,
            **{name: getattr(self, name) for name in names},
            "deaths": [attrs.asdict(death) for death in self.deaths],
            "findings": [text_of(finding) for finding in self.findings],
        }


def text_of(finding: Finding) -> str:
    """Return a finding as the command prints it."""
    return f"at {finding.at_ms:,} ms {finding.code}: {finding.what}"


def run_group(scenario: SingleGroupScenario, protocol: GroupProtocol, seed: int, release: Release = NEWEST) -> GroupRun:
    """Return the report of `scenario` with `protocol` in a release; equal arguments give equal reports.

    Raises UsageError for a scenario that cannot be run, and for an assignor that the protocol does not take.
    """
    simulation = GroupSimulation(scenario, protocol, seed, release)
    simulation.run()
    ledger, counts = simulation.ledger, simulation.counts
    return GroupRun(
        scenario=scenario,
        protocol=protocol,
        assignor=scenario.assignor_of(protocol),
        event_count=simulation.cluster.event_count,
        rebalance_count=ledger.generation_count,
        rebalance_latency_avg=round(counts.rebalance_ms / max(1, counts.rebalance_count), 1),
        rebalance_latency_max=counts.rebalance_ms_max,
        rebalance_latency_total=counts.rebalance_ms,
        rebalance_total=counts.rebalance_count,
        failed_rebalance_total=counts.failed_rebalance_count,
        unowned_ms=sum(ledger.unowned_ms.values()),
        unowned_ms_max=max(ledger.unowned_ms.values(), default=0),
        shared_ms=sum(ledger.shared_ms.values()),
        move_count=ledger.move_count,
        least_move_count=ledger.least_move_count,
        return_count=ledger.return_count,
        read_count=counts.read_count,
        duplicate_count=counts.duplicate_count,
        lag_max=counts.lag_max,
        commits={error.name: count for error, count in sorted(counts.commits.items())},
        departures=dict(sorted(ledger.departures.items())),
        deaths=tuple(ledger.deaths),
        settled_ms=ledger.settled_ms,
        findings=simulation.found(),
        spans=tuple(ledger.spans),
        marks=tuple(ledger.marks),
        generations_ms=tuple(ledger.generations_ms),
    )
