"""Define named scenarios of a mirrored cluster: faults and the expected result.

Constraints: the promises of `replication.mirror.checks` hold in every scenario; its expectations come on top.

Source: ours; the cases are those of KIP-382 and of MirrorMaker's documentation.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.errors import UsageError
from broker.units import DurationMs, TimeMs
from broker.wording import unknown
from replication.mirror.options import MirrorFault, MirrorOptions, pair
from replication.mirror.outcome import MirrorOutcome
from replication.mirror.policy import IdentityPolicy
from replication.simulation.faults import Fault
from replication.simulation.options import FaultKind, Options, quiet

_DURATION_MS: Final = DurationMs(20_000)


@attrs.frozen(kw_only=True)
class Expected:
    """Hold the expected result of a scenario; `reads_again` is about failovers before the end, in all partitions."""

    has_duplicates: bool = False
    target_topics: tuple[str, ...] = ("source.heartbeats", "source.orders")
    reads_again: bool = False
    partition_count: int = 3


@attrs.frozen(kw_only=True)
class MirrorScenario:
    """Describe one scenario."""

    name: str
    title: str
    how: str
    options: MirrorOptions
    expected: Expected = attrs.field(factory=Expected)


def _clusters(*, idle_topics: tuple[str, ...] = ()) -> MirrorOptions:
    source: Options = attrs.evolve(quiet(1, _DURATION_MS), produce_ms=DurationMs(100))
    calm = attrs.evolve(pair(source, quiet(2, _DURATION_MS), idle_topics=idle_topics), seed=1)
    return attrs.evolve(calm, source_plan=(), target_plan=())


_CALM: Final = _clusters()

SCENARIOS: Final = (
    MirrorScenario(
        name="M01",
        title="Copy without faults",
        how="Two producers write, one group reads and commits, and the mirror copies every record once, in order. At "
        "the end the group's offsets are translated exactly.",
        options=_CALM,
    ),
    MirrorScenario(
        name="M02",
        title="Mirror dies before it commits its source offsets",
        how="The mirror is killed between two commits of source offsets and goes on at the last one: the records "
        "copied since are on the target twice, and none is missing.",
        options=attrs.evolve(_CALM, deaths=(MirrorFault(TimeMs(10_000), DurationMs(4_000)),)),
        expected=Expected(has_duplicates=True),
    ),
    MirrorScenario(
        name="M03",
        title="Leader of the target dies during a write",
        how="A write is appended and its response never arrives: the mirror sends it again to the next leader.",
        options=attrs.evolve(
            _CALM,
            target_plan=(Fault(TimeMs(8_000), FaultKind.CRASH_AT_COMMIT, 0, DurationMs(11_000)),),
        ),
        expected=Expected(has_duplicates=True),
    ),
    MirrorScenario(
        name="M04",
        title="Leader of the source dies",
        how="The mirror finds the new leader and reads on there: it has read committed records only, so the source "
        "loses no copied record.",
        options=attrs.evolve(_CALM, source_plan=(Fault(TimeMs(8_000), FaultKind.KILL, 0, DurationMs(11_000)),)),
    ),
    MirrorScenario(
        name="M05",
        title="Failover between two checkpoints",
        how="The group is ahead of the last emitted sync, so it goes on a little earlier on the target: it reads some "
        "records again and misses none.",
        options=attrs.evolve(_CALM, failover_at_ms=TimeMs(16_500)),
        expected=Expected(reads_again=True),
    ),
    MirrorScenario(
        name="M06",
        title="Topics that came from the target are not copied back",
        how="The source holds target.audit, a copy from the other direction, and internal topics of Kafka and "
        "MirrorMaker: none of them is copied.",
        options=_clusters(idle_topics=("target.audit", "__consumer_offsets", "mm2-configs.target.internal")),
    ),
    MirrorScenario(
        name="M07",
        title="Identity policy keeps topic names",
        how="Under the identity policy orders stays orders; only heartbeats gets the source's name.",
        options=attrs.evolve(_CALM, settings=attrs.evolve(_CALM.settings, policy=IdentityPolicy())),
        expected=Expected(target_topics=("orders", "source.heartbeats")),
    ),
    MirrorScenario(
        name="M08",
        title="Topic gets another partition",
        how="The mirror looks at the source's topics at intervals, raises the copy to as many partitions, and copies "
        "the new one from its first record on.",
        options=attrs.evolve(
            _CALM,
            grows_at_ms=TimeMs(6_000),
            settings=attrs.evolve(_CALM.settings, refresh_ms=DurationMs(5_000)),
        ),
        expected=Expected(partition_count=4),
    ),
)
"""All scenarios, by name."""


def find_scenario(name: str) -> MirrorScenario:
    """Return the scenario of a name; raise UsageError if there is none."""
    for scenario in SCENARIOS:
        if scenario.name == name:
            return scenario
    known = (scenario.name for scenario in SCENARIOS)
    raise UsageError(unknown("scenario", name, known, "brokerside mirror --list"))


def differences(scenario: MirrorScenario, outcome: MirrorOutcome) -> tuple[str, ...]:
    """Return one sentence for each difference between an outcome and its scenario; empty if there is none."""
    expected = scenario.expected
    found = [str(finding) for finding in outcome.findings]
    duplicate_count = sum(copy.duplicate_count for copy in outcome.copies)
    if bool(duplicate_count) is not expected.has_duplicates:
        found.append(f"{duplicate_count} records are on the target twice")
    if outcome.target_topics != expected.target_topics:
        found.append(f"the target has the topics {', '.join(outcome.target_topics)}")
    if len(outcome.copies) != expected.partition_count:
        found.append(f"{len(outcome.copies)} partitions are copied")
    again = sum(each.read_again_count for each in outcome.failovers if each.at_ms == scenario.options.failover_at_ms)
    if bool(again) is not expected.reads_again:
        found.append(f"{again} records are read again by the failover")
    return tuple(found)
