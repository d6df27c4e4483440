"""A scenario played with one protocol, and what came of it.

Decides how a scenario becomes a report: a world, its ledger and its checker, and one line for each thing counted.

Source: ours; names of latencies are those of Java's consumer metrics.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from replication.groups.alone.checking import Checker, Finding
from replication.groups.alone.ledger import Ledger, Mark, Spell
from replication.groups.alone.modes import assignor_of
from replication.groups.alone.scenario import GroupRunScenario, Mode
from replication.groups.alone.world import World


@attrs.frozen(kw_only=True)
class Life:
    """What came of one scenario with one protocol. Times are in ms; sums over partitions are named so."""

    scenario: GroupRunScenario
    mode: Mode
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
    spells: tuple[Spell, ...]
    marks: tuple[Mark, ...]
    generations_ms: tuple[int, ...]

    @property
    def is_clean(self) -> bool:
        """Whether every invariant held."""
        return not self.findings

    def figures(self) -> dict[str, Any]:
        """Return what was counted, for JSON: all but the history."""
        left_out = ("scenario", "mode", "findings", "spells", "marks", "generations_ms", "deaths")
        shown = {field.name: getattr(self, field.name) for field in attrs.fields(Life) if field.name not in left_out}
        return {
            "protocol": self.mode.value,
            **shown,
            "deaths": [attrs.asdict(death) for death in self.deaths],
            "findings": [str(finding) for finding in self.findings],
        }


def live(scenario: GroupRunScenario, mode: Mode, seed: int) -> Life:
    """Play `scenario` with `mode`; the same three give the same life. Raises UsageError for what cannot be played."""
    world = World(scenario, mode, seed)
    ledger, checker = Ledger(), Checker()
    world.watchers += [ledger, checker]
    world.play()
    ledger.finish(world)
    latencies = ledger.latencies_ms
    return Life(
        scenario=scenario,
        mode=mode,
        assignor=assignor_of(scenario, mode),
        event_count=world.event_count,
        rebalance_count=ledger.generation_count,
        rebalance_latency_avg=round(sum(latencies) / max(1, len(latencies)), 1),
        rebalance_latency_max=max(latencies, default=0),
        rebalance_latency_total=sum(latencies),
        rebalance_total=len(latencies),
        failed_rebalance_total=ledger.failed_count,
        unowned_ms=sum(ledger.unowned_ms.values()),
        unowned_ms_max=max(ledger.unowned_ms.values(), default=0),
        shared_ms=sum(ledger.shared_ms.values()),
        move_count=ledger.move_count,
        least_move_count=ledger.least_move_count,
        return_count=ledger.return_count,
        read_count=ledger.read_count,
        duplicate_count=ledger.duplicate_count,
        lag_max=ledger.lag_max,
        commits={error.name: count for error, count in sorted(ledger.commits.items())},
        departures=dict(sorted(ledger.departures.items())),
        deaths=tuple(ledger.deaths),
        settled_ms=ledger.settled_ms,
        findings=tuple(checker.findings),
        spells=tuple(ledger.spells),
        marks=tuple(ledger.marks),
        generations_ms=tuple(ledger.generations_ms),
    )
