"""A fault story as data: a cluster, a plan of faults, what must be seen when, and what is lost in the end.
 It decides how a story is held against what happens: at each look the partition's leader, ISR and ELR are compared;
at the end the invariants that were broken, and how many acknowledged records were lost.

Goals, most important first
1. A story can be read: who does what when, and what follows.
2. It runs on the same simulation as everything else: nothing happens but by messages.

Constraints: seed and plan are fixed, so a story always goes the same way. Historical stories say which rules they
need and which invariants those break.

Example: `Look(20_000, leader=1, isr=(1, 2))`.

Left out: stories of single functions, which are tests of those.

Source: the catalogue of scenarios of this project; each names its own.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from broker.units import MINUTE_MS, DurationMs
from replication.produce import ACKS_ALL
from replication.simulation import Fault, Options, Outcome, quiet, run
from replication.simulation.options import with_terms
from replication.simulation.trace import Tell, silent
from replication.terms import Terms

DEFAULT_TERMS = Terms(min_isr=2)


@attrs.frozen
class Look:
    """What partition 0 must be at a time; None is not looked at, leader -1 is nobody."""

    at_ms: int
    leader: int | None = None
    isr: tuple[int, ...] | None = None
    elr: tuple[int, ...] | None = None
    replicas: tuple[int, ...] | None = None
    leader_epoch: int | None = None


@attrs.frozen(kw_only=True)
class Scenario:
    """One story. `lost_max` bounds the records lost that acks=all promised, `lost_min` says how many must be lost."""

    name: str
    title: str
    how: str
    source: str
    plan: tuple[Fault, ...]
    looks: tuple[Look, ...] = ()
    terms: Terms = DEFAULT_TERMS
    breaks: frozenset[str] = frozenset()
    lost_min: int = 0
    lost_max: int = 0
    lost_of_one_min: int = 0
    brokers: int = 3
    acks: tuple[int, ...] = (ACKS_ALL,)
    produce_ms: DurationMs = attrs.field(default=DurationMs(500))
    duration_ms: DurationMs = attrs.field(default=DurationMs(MINUTE_MS))
    is_strict: bool = True

    def options(self) -> Options:
        """Return the options that the story runs with."""
        options = attrs.evolve(
            quiet(1, self.duration_ms),
            brokers=self.brokers,
            partitions=1,
            acks=self.acks,
            produce_ms=self.produce_ms,
            is_strict=self.is_strict,
            name=self.name,
        )
        return with_terms(options, self.terms)

    def play(self, tell: Tell = silent) -> Outcome:
        """Run the story. Checkers expect what the story's own rules promise."""
        return run(self.options(), self.plan, tell)


def differences(scenario: Scenario, outcome: Outcome) -> list[str]:
    """Return what went otherwise than the story says, one sentence each."""
    return list(_differences(scenario, outcome))


def _differences(scenario: Scenario, outcome: Outcome) -> Iterator[str]:
    for look in scenario.looks:
        state = outcome.recording.state_at(0, look.at_ms)
        for field in attrs.fields(Look):
            expected = getattr(look, field.name)
            if field.name == "at_ms" or expected is None:
                continue
            seen = getattr(state, field.name, None)
            if seen != expected:
                yield f"at {look.at_ms} ms {field.name} is {seen}, expected {expected}"
    broken = {finding.code for finding in outcome.findings}
    if scenario.breaks and not broken & scenario.breaks:
        yield f"none of {', '.join(sorted(scenario.breaks))} is broken"
    if not scenario.breaks and broken:
        yield f"{outcome.findings[0]}"
    by_all = sum(lost.acks == ACKS_ALL for lost in outcome.durability.lost)
    if not scenario.lost_min <= by_all <= scenario.lost_max:
        yield f"{by_all} records of acks=all are lost, expected {scenario.lost_min} to {scenario.lost_max}"
    by_one = len(outcome.durability.lost) - by_all
    if by_one < scenario.lost_of_one_min:
        yield f"{by_one} records of acks=1 are lost, expected {scenario.lost_of_one_min} or more"
