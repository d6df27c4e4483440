"""A fault scenario as data: a cluster, what happens to it, what must be seen when, and what is lost in the end.

It decides how a scenario is held against what happens: at each look the partition's leader, ISR, ELR and logs are
compared; at the end the error codes that were answered, the invariants that were broken, and which acknowledged
records were lost.

Goals, most important first
1. A scenario can be read: who does what when, and what follows.
2. It runs on the same simulation as everything else: nothing happens but by messages.

Constraints: seed, plan and acts are fixed, so a scenario always goes the same way. Historical scenarios are played
twice: as it was before a fix (named "...-before"), with the invariants that this breaks, and as it is.

Example: `Look(20_000, leader=1, isr=(1, 2))`; `Answers("ProduceResponse", ErrorCode.NOT_ENOUGH_REPLICAS)`.

Left out: scenarios that need no cluster (`replication.scenarios.part_scenario`).

Source: the catalogue of scenarios of this project; each names its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.units import MINUTE_MS, DurationMs
from replication.retention import Retention
from replication.roles.settings import RoleSettings
from replication.rules.produce import ACKS_ALL
from replication.rules.settings import PartitionSettings
from replication.scenarios.acts import Act
from replication.scenarios.script import Script
from replication.scenarios.verdict import Verdict
from replication.simulation import Fault, Options, Outcome, quiet, run
from replication.simulation.options import with_partition_settings
from replication.simulation.retention import with_retention
from replication.simulation.trace import Tell, silent

DEFAULT_TERMS: Final = PartitionSettings(min_isr=2)
DEFAULT_SETTINGS: Final = quiet(1, DurationMs(MINUTE_MS)).role_settings
_STATE_FIELDS: Final = ("leader", "isr", "elr", "replicas", "leader_epoch", "last_known", "recovering")
_NOTE_FIELDS: Final = ("logs", "highs", "starts")
_NEVER_ENDS: Final = 1_000_000


@attrs.frozen
class Look:
    """What a partition must be at a time; None is not looked at, leader -1 is nobody.

    `logs` are the values in each broker's log, by broker; `highs` their high watermarks and `starts` their log starts,
    -1 for no log.
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
    highs: tuple[int, ...] | None = None
    starts: tuple[int, ...] | None = None


@attrs.frozen
class Answers:
    """How often an answer of a kind, the name of its message, must have carried an error code."""

    kind: str
    error: ErrorCode = ErrorCode.NONE
    count_min: int = 1
    count_max: int = _NEVER_ENDS


def never(kind: str, error: ErrorCode = ErrorCode.NONE) -> Answers:
    """Return that no answer of a kind carries an error code."""
    return Answers(kind, error, 0, 0)


@attrs.frozen(kw_only=True)
class Scenario:
    """One scenario. `lost_max` bounds the records lost that acks=all promised, `lost_min` says how many must be lost.

    Where a scenario says each write by itself, `gone` takes their place: the values, acknowledged with any acks, that
    the leader does not have in the end. `seen` is what each consumer among the acts is shown, `shown` what the
    simulation's own consumers are, if that is looked at. With `retention` logs are cut and compacted.
    """

    name: str
    title: str
    how: str
    source: str
    plan: tuple[Fault, ...] = ()
    acts: tuple[Act, ...] = ()
    looks: tuple[Look, ...] = ()
    answers: tuple[Answers, ...] = ()
    settings: PartitionSettings = DEFAULT_TERMS
    role_settings: RoleSettings = DEFAULT_SETTINGS
    breaks: frozenset[str] = frozenset()
    lost_min: int = 0
    lost_max: int = 0
    lost_of_one_min: int = 0
    gone: tuple[int, ...] | None = None
    seen: tuple[tuple[int, ...], ...] = ()
    shown: tuple[int, ...] | None = None
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
        """Return the options that the scenario runs with."""
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
            role_settings=self.role_settings,
            name=self.name,
        )
        options = with_partition_settings(options, self.settings)
        return options if self.retention is None else with_retention(options, self.retention)

    def play(self, tell: Tell = silent) -> Verdict:
        """Run the scenario and hold it against what it says. Checkers expect what the scenario's own rules promise."""
        script = Script(self.acts, ((look.at_ms, look.partition) for look in self.looks))
        outcome = run(self.options(), self.plan, tell, extension=script)
        report = outcome.durability
        told = (
            f"{outcome.event_count:,} events; acknowledged {report.acked_count + report.acked_by_one_count}, "
            f"lost {len(report.lost)}; broken: {', '.join(broken_in(outcome)) or 'nothing'}"
        )
        return Verdict(told, tuple(differences(self, outcome, script)))


def broken_in(outcome: Outcome) -> tuple[str, ...]:
    """Return the codes of the invariants that a run broke."""
    return tuple(sorted({finding.code for finding in outcome.findings}))


def differences(scenario: Scenario, outcome: Outcome, script: Script) -> Iterator[str]:
    """Yield what went otherwise than the scenario says, one sentence each."""
    for look in scenario.looks:
        yield from _looked_at(look, outcome, script)
    for answers in scenario.answers:
        count = script.answers[answers.kind, answers.error]
        if not answers.count_min <= count <= answers.count_max:
            wanted = "none" if not answers.count_max else f"{answers.count_min} or more"
            if answers.count_max < _NEVER_ENDS and answers.count_max:
                wanted = f"{answers.count_min} to {answers.count_max}"
            yield f"{count} answers {answers.kind} say {answers.error.name} ({answers.error.value}), expected {wanted}"
    broken = set(broken_in(outcome))
    if scenario.breaks - broken:
        yield f"{', '.join(sorted(scenario.breaks - broken))} not broken, expected to be"
    for finding in outcome.findings:
        if finding.code not in scenario.breaks:
            yield str(finding)
            break
    yield from _lost(scenario, outcome)
    if scenario.gone is not None and script.gone != scenario.gone:
        yield f"acknowledged and gone are {script.gone}, expected {scenario.gone}"
    if script.seen != scenario.seen:
        yield f"consumers were shown {script.seen}, expected {scenario.seen}"
    if scenario.shown is not None and script.shown != scenario.shown:
        yield f"the consumers were shown {script.shown}, expected {scenario.shown}"


def _looked_at(look: Look, outcome: Outcome, script: Script) -> Iterator[str]:
    state = outcome.recording.state_at(look.partition, look.at_ms)
    note = script.notes.get((look.at_ms, look.partition))
    where = f" of partition {look.partition}" if look.partition else ""
    for names, seen_in in ((_STATE_FIELDS, state), (_NOTE_FIELDS, note)):
        for name in names:
            expected, seen = getattr(look, name), getattr(seen_in, name, None)
            if expected is not None and seen != expected:
                yield f"at {look.at_ms} ms {name}{where} is {seen}, expected {expected}"


def _lost(scenario: Scenario, outcome: Outcome) -> Iterator[str]:
    by_all = sum(lost.acks == ACKS_ALL for lost in outcome.durability.lost)
    if scenario.gone is None and not scenario.lost_min <= by_all <= scenario.lost_max:
        yield f"{by_all} records of acks=all are lost, expected {scenario.lost_min} to {scenario.lost_max}"
    by_one = len(outcome.durability.lost) - by_all
    if by_one < scenario.lost_of_one_min:
        yield f"{by_one} records of acks=1 are lost, expected {scenario.lost_of_one_min} or more"
