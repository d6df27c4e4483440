"""Define a scenario of consumer groups in the cluster: members, faults, and the state expected at given times.

One group; one topic "t" of three partitions unless the scenario has others; one partition of `__consumer_offsets`,
whose preferred leader is broker 0. Seed, plan and faults are fixed.

Source: ours; each scenario names its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import attrs

from broker.ids import NO_LEADER, BrokerId
from broker.units import MINUTE_MS, DurationMs
from broker.wording import counted
from replication.checkers import Finding
from replication.groups.extension import GroupsExtension
from replication.groups.plan import GroupsPlan, Layout, MemberPlan
from replication.roles.settings import RoleSettings
from replication.scenarios.result import ExpectedResponses, ScenarioResult
from replication.simulation.cluster import Cluster
from replication.simulation.fault import Fault
from replication.simulation.history import LineSink, discard_line
from replication.simulation.options import Options, quiet
from replication.simulation.run import run

GROUP_ID: Final = "group"
_SEED: Final = 1


@attrs.frozen
class ExpectedGroup:
    """State what a group must be at `at_ms`; a field that is None is not compared.

    `owned` maps each member to its partitions, such as "t-0".
    """

    at_ms: int
    coordinator: int | None = None
    state: str | None = None
    generation: int | None = None
    owned: Mapping[str, tuple[str, ...]] | None = None


@attrs.frozen(kw_only=True)
class GroupScenario:
    """Describe one scenario; `deaths` counts the members whose program must end by an error of its own."""

    name: str
    title: str
    how: str
    source: str
    members: tuple[MemberPlan, ...]
    faults: tuple[Fault, ...] = ()
    expected_states: tuple[ExpectedGroup, ...] = ()
    expected_responses: tuple[ExpectedResponses, ...] = ()
    deaths: int = 0
    topics: tuple[tuple[str, int], ...] = (("t", 3),)
    role_settings: RoleSettings = attrs.field(default=RoleSettings(produce_ms_max=DurationMs(5_000)))
    load_ms_max: DurationMs = attrs.field(default=DurationMs(1_500))
    """The longest time in ms that a coordinator takes to load its partition."""
    duration_ms: DurationMs = attrs.field(default=DurationMs(2 * MINUTE_MS))

    def options(self) -> Options:
        """Return the options of the simulation."""
        return attrs.evolve(
            quiet(_SEED, self.duration_ms),
            partitions=sum(count for _, count in self.topics),
            internal_partitions=1,
            role_settings=self.role_settings,
            name=self.name,
        )

    def play(self, on_line: LineSink = discard_line) -> ScenarioResult:
        """Run the scenario and compare the run with the expected states and responses."""
        options = self.options()
        plan = GroupsPlan(layout=Layout(self.topics, 1), members=self.members, load_ms_max=self.load_ms_max)
        groups = GroupsExtension(options, plan)
        extension = _GroupExtension(self, groups)
        outcome = run(options, self.faults, on_line, extension=extension)
        summary = f"{counted(outcome.event_count, 'event')}; {'; '.join(groups.counts.lines())}"
        findings = tuple(str(finding) for finding in outcome.findings[:1])
        return ScenarioResult(summary, (*extension.differences, *_response_differences(self, groups), *findings))


class _GroupExtension:
    """Add the scenario's groups to a run, and compare the expected states."""

    def __init__(self, scenario: GroupScenario, groups: GroupsExtension) -> None:
        self.differences: list[str] = []
        self._scenario = scenario
        self._groups = groups

    def join(self, cluster: Cluster) -> None:
        """Add the members to the cluster and schedule the comparisons."""
        self._groups.join(cluster)
        for look in self._scenario.expected_states:
            cluster.at(look.at_ms, partial(self._look, cluster, look))

    def missing(self, cluster: Cluster) -> str | None:
        """Return what the groups lack to be whole, None if nothing."""
        return self._groups.missing(cluster)

    def findings(self, cluster: Cluster) -> Sequence[Finding]:
        """Return the broken invariants of the groups."""
        return self._groups.findings(cluster)

    def _look(self, cluster: Cluster, look: ExpectedGroup) -> None:
        seen = self._seen(cluster)
        for name in ("coordinator", "state", "generation", "owned"):
            expected = getattr(look, name)
            if expected is not None and getattr(seen, name) != expected:
                self.differences.append(f"at {look.at_ms} ms {name} is {getattr(seen, name)}, expected {expected}")

    def _seen(self, cluster: Cluster) -> ExpectedGroup:
        groups = self._groups
        leader = cluster.controller.image.partitions[groups.plan.layout.of_group(GROUP_ID)].leader
        service = groups.checker.authority(cluster, GROUP_ID)
        state, generation = None, None
        if service is not None and service.is_consumer_group:
            state, generation = service.consumer.group.state.name, service.consumer.group.epoch
        elif service is not None:
            state, generation = service.classic.group.state.name, service.classic.group.generation
        owned = {
            member.plan.spec.name: tuple(sorted(map(str, member.client.subscriptions.owned)))
            for member in groups.members
            if member.client is not None and member.is_alive
        }
        coordinator = None if leader == NO_LEADER or service is None else int(BrokerId(leader))
        return ExpectedGroup(cluster.now_ms, coordinator, state, generation, owned)


def _response_differences(scenario: GroupScenario, groups: GroupsExtension) -> Iterator[str]:
    """Yield one sentence for each wrong count of responses and for unexpected deaths."""
    answers = groups.counts.answers
    for wanted in scenario.expected_responses:
        count = sum(
            number
            for (member, kind, error), number in answers.items()
            if (kind, error) == (wanted.kind, wanted.error) and wanted.member in (None, member)
        )
        if not wanted.count_min <= count <= wanted.count_max:
            who = wanted.member or "members"
            yield (
                f"{who} heard {wanted.kind} {wanted.error.name} ({wanted.error.value}) {count} times, "
                f"expected {wanted.count_min} to {wanted.count_max}"
            )
    if groups.counts.death_count != scenario.deaths:
        yield f"{groups.counts.death_count} programs ended by themselves, expected {scenario.deaths}"
