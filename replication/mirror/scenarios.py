"""Named scenarios of a copied cluster, as data: what happens to whom, and what must come of it.

Decides nothing. Each has a title, a sentence on how it happens, two clusters, their faults and what is expected.

Constraints: whatever the scenario, the promises of `replication.mirror.checks` hold; what a scenario expects comes on
top.

Worked example: M02 kills the mirror 4 s after an offset was committed: what was copied since is on the target twice.

Left out: flows in both directions at once.

Source: ours; the cases are those that KIP-382 and the documentation of MirrorMaker speak of.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.errors import UsageError
from broker.units import DurationMs, TimeMs
from replication.mirror.options import MirrorFault, MirrorOptions, pair
from replication.mirror.outcome import MirrorOutcome
from replication.mirror.policy import IdentityPolicy
from replication.simulation.faults import Fault
from replication.simulation.options import FaultKind, Options, quiet

_DURATION_MS: Final = DurationMs(20_000)


@attrs.frozen(kw_only=True)
class Expected:
    """What a scenario must come to. `read_again` and `behind` are about failovers before the end, in all partitions."""

    has_duplicates: bool = False
    target_topics: tuple[str, ...] = ("source.heartbeats", "source.orders")
    reads_again: bool = False
    partition_count: int = 3


@attrs.frozen(kw_only=True)
class MirrorScenario:
    """One scenario."""

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
        title="a copy without faults",
        how="Two producers write, one group reads and commits, the mirror copies all of it: once, in order, and the "
        "group's offsets are translated exactly in the end.",
        options=_CALM,
    ),
    MirrorScenario(
        name="M02",
        title="the mirror dies before it commits",
        how="Killed between two commits of source offsets, it goes on at the last one: what it had copied since is "
        "on the target twice, nothing is missing.",
        options=attrs.evolve(_CALM, deaths=(MirrorFault(TimeMs(10_000), DurationMs(4_000)),)),
        expected=Expected(has_duplicates=True),
    ),
    MirrorScenario(
        name="M03",
        title="a leader of the target dies while it is written to",
        how="A write is appended and its answer never comes: the mirror sends it again to the next leader.",
        options=attrs.evolve(
            _CALM,
            target_plan=(Fault(TimeMs(8_000), FaultKind.CRASH_AT_COMMIT, 0, DurationMs(11_000)),),
        ),
        expected=Expected(has_duplicates=True),
    ),
    MirrorScenario(
        name="M04",
        title="a leader of the source dies",
        how="The mirror asks who leads now and reads on there: only what is committed was ever read, so nothing that "
        "is copied is lost on the source.",
        options=attrs.evolve(_CALM, source_plan=(Fault(TimeMs(8_000), FaultKind.KILL, 0, DurationMs(11_000)),)),
    ),
    MirrorScenario(
        name="M05",
        title="a failover between two checkpoints",
        how="The group translated behind the last sync that was told, so it goes on a little earlier on the target: it "
        "reads some records again and misses none.",
        options=attrs.evolve(_CALM, failover_at_ms=TimeMs(16_500)),
        expected=Expected(reads_again=True),
    ),
    MirrorScenario(
        name="M06",
        title="what came from the target is not sent back",
        how="The source holds target.audit, a copy from the other direction, and topics that Kafka and MirrorMaker "
        "keep for themselves: none of them is copied.",
        options=_clusters(idle_topics=("target.audit", "__consumer_offsets", "mm2-configs.target.internal")),
    ),
    MirrorScenario(
        name="M07",
        title="names are kept",
        how="Under the identity policy orders stays orders; heartbeats alone get the source's name.",
        options=attrs.evolve(_CALM, settings=attrs.evolve(_CALM.settings, policy=IdentityPolicy())),
        expected=Expected(target_topics=("orders", "source.heartbeats")),
    ),
    MirrorScenario(
        name="M08",
        title="a topic gets one partition more",
        how="The mirror looks at the source's topics now and then, raises the copy to as many partitions and copies "
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
    raise UsageError(f"there is no scenario {name!r}; there are {', '.join(scenario.name for scenario in SCENARIOS)}")


def differences(scenario: MirrorScenario, outcome: MirrorOutcome) -> tuple[str, ...]:
    """Return in what an outcome differs from what its scenario expects, as sentences; nothing if it does not."""
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
