"""Define a fault scenario as data: a cluster, faults and operations, and the states, responses and losses expected.

Seed, plan and operations are fixed, so a scenario always goes the same way. A historical bug is played twice: without
its fix, named "...-before", with the invariants that this breaks; and with the fix.

Source: each scenario names its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.units import MINUTE_MS, DurationMs
from broker.wording import counted
from replication.retention import Retention
from replication.roles.settings import RoleSettings
from replication.rules.produce import ACKS_ALL
from replication.rules.settings import PartitionSettings
from replication.scenarios.extension import ScenarioExtension
from replication.scenarios.operations import Operation
from replication.scenarios.result import COUNT_MAX, ExpectedResponses, ScenarioResult
from replication.simulation import Fault, Options, Outcome, quiet, run
from replication.simulation.history import LineSink, discard_line
from replication.simulation.retention import with_retention

DEFAULT_PARTITION_SETTINGS: Final = PartitionSettings(min_isr=2)
DEFAULT_ROLE_SETTINGS: Final = quiet(1, DurationMs(MINUTE_MS)).role_settings
_STATE_FIELDS: Final = ("leader", "isr", "elr", "replicas", "leader_epoch", "last_known", "recovering")
_SNAPSHOT_FIELDS: Final = ("logs", "high_watermarks", "log_starts")


@attrs.frozen
class ExpectedState:
    """State what a partition must be at `at_ms`; a field that is None is not compared, leader -1 means no leader.

    `logs`, `high_watermarks` and `log_starts` are by broker: the values in each log, its high watermark and its log
    start offset, -1 for no log.
    """

    at_ms: int
    partition: int = attrs.field(default=0, kw_only=True)
    leader: int | None = None
    isr: tuple[int, ...] | None = None
    elr: tuple[int, ...] | None = None
    replicas: tuple[int, ...] | None = None
    leader_epoch: int | None = None
    last_known: tuple[int, ...] | None = None
    recovering: bool | None = None
    logs: tuple[tuple[int, ...], ...] | None = None
    high_watermarks: tuple[int, ...] | None = None
    log_starts: tuple[int, ...] | None = None


def no_response(kind: str, error: ErrorCode = ErrorCode.NONE) -> ExpectedResponses:
    """Return the expectation that no response of a type carries an error code."""
    return ExpectedResponses(kind, error, 0, 0)


@attrs.frozen(kw_only=True)
class Scenario:
    """Describe one scenario.

    `lost_min` and `lost_max` bound the count of lost records of acks=all.
    `lost_values` replaces them where a scenario fixes each write: the acknowledged values, whatever the acks, that
    the leader lacks at the end. `read_values` are the values that each consumer among the operations reads. With
    `retention` logs are deleted and compacted while they run.
    """

    name: str
    title: str
    how: str
    source: str
    plan: tuple[Fault, ...] = ()
    operations: tuple[Operation, ...] = ()
    expected_states: tuple[ExpectedState, ...] = ()
    expected_responses: tuple[ExpectedResponses, ...] = ()
    settings: PartitionSettings = DEFAULT_PARTITION_SETTINGS
    role_settings: RoleSettings = DEFAULT_ROLE_SETTINGS
    breaks: frozenset[str] = frozenset()
    lost_min: int = 0
    lost_max: int = 0
    lost_values: tuple[int, ...] | None = None
    read_values: tuple[tuple[int, ...], ...] = ()
    retention: Retention | None = None
    brokers: int = 3
    partitions: int = 1
    replication_factor: int = 3
    producers: int = 2
    consumers: int = 1
    acks: tuple[int, ...] = (ACKS_ALL,)
    produce_ms: DurationMs = attrs.field(default=DurationMs(500))
    duration_ms: DurationMs = attrs.field(default=DurationMs(MINUTE_MS))
    heal_ms_max: DurationMs = attrs.field(default=DurationMs(3 * MINUTE_MS))
    is_strict: bool = True

    def options(self) -> Options:
        """Return the options of the simulation."""
        options = attrs.evolve(
            quiet(1, self.duration_ms),
            brokers=self.brokers,
            racks=self.brokers,
            replication_factor=self.replication_factor,
            partitions=self.partitions,
            producers=self.producers,
            consumers=self.consumers,
            acks=self.acks,
            produce_ms=self.produce_ms,
            heal_ms_max=self.heal_ms_max,
            is_strict=self.is_strict,
            role_settings=attrs.evolve(self.role_settings, settings=self.settings),
            name=self.name,
        )
        return options if self.retention is None else with_retention(options, self.retention)

    def play(self, on_line: LineSink = discard_line) -> ScenarioResult:
        """Run the scenario and compare the run with it; the checkers expect what the scenario's own rules promise."""
        extension = ScenarioExtension(self.operations, ((look.at_ms, look.partition) for look in self.expected_states))
        outcome = run(self.options(), self.plan, on_line, extension=extension)
        report = outcome.durability
        summary = (
            f"{counted(outcome.event_count, 'event')}; acknowledged {report.acked_count + report.acked_by_one_count}, "
            f"lost {len(report.lost)}; broken: {', '.join(broken_in(outcome)) or 'nothing'}"
        )
        return ScenarioResult(summary, tuple(differences(self, outcome, extension)))


def broken_in(outcome: Outcome) -> tuple[str, ...]:
    """Return the codes of the invariants that a run broke, sorted."""
    return tuple(sorted(outcome.failures))


def differences(scenario: Scenario, outcome: Outcome, extension: ScenarioExtension) -> Iterator[str]:
    """Yield one sentence for each difference between the run and the scenario."""
    for look in scenario.expected_states:
        yield from _state_differences(look, outcome, extension)
    for wanted in scenario.expected_responses:
        count = extension.responses[wanted.kind, wanted.error]
        if not wanted.count_min <= count <= wanted.count_max:
            counts = "none" if not wanted.count_max else f"{wanted.count_min} or more"
            if 0 < wanted.count_max < COUNT_MAX:
                counts = f"{wanted.count_min} to {wanted.count_max}"
            yield f"{count} answers {wanted.kind} say {wanted.error.name} ({wanted.error.value}), expected {counts}"
    broken = set(broken_in(outcome))
    if scenario.breaks - broken:
        yield f"{', '.join(sorted(scenario.breaks - broken))} not broken, expected to be"
    for finding in outcome.findings:
        if finding.code not in scenario.breaks:
            yield str(finding)
            break
    yield from _lost(scenario, outcome)
    if scenario.lost_values is not None and extension.lost_values != scenario.lost_values:
        yield f"lost acknowledged values are {extension.lost_values}, expected {scenario.lost_values}"
    if extension.read_values != scenario.read_values:
        yield f"the scenario's consumers read {extension.read_values}, expected {scenario.read_values}"


def _state_differences(look: ExpectedState, outcome: Outcome, extension: ScenarioExtension) -> Iterator[str]:
    state = outcome.recording.state_at(look.partition, look.at_ms)
    snapshot = extension.snapshots.get((look.at_ms, look.partition))
    where = f" of partition {look.partition}" if look.partition else ""
    for names, seen_in in ((_STATE_FIELDS, state), (_SNAPSHOT_FIELDS, snapshot)):
        for name in names:
            expected, seen = getattr(look, name), getattr(seen_in, name, None)
            if expected is not None and seen != expected:
                yield f"at {look.at_ms} ms {name}{where} is {seen}, expected {expected}"


def _lost(scenario: Scenario, outcome: Outcome) -> Iterator[str]:
    by_all = sum(lost.acks == ACKS_ALL for lost in outcome.durability.lost)
    if scenario.lost_values is None and not scenario.lost_min <= by_all <= scenario.lost_max:
        yield f"{by_all} records of acks=all are lost, expected {scenario.lost_min} to {scenario.lost_max}"
