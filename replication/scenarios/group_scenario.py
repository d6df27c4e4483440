"""A scenario of groups in the cluster as data: who is in them, what befalls members and brokers, what must be seen
when.

It decides how a scenario is held against what happens: at each look the coordinator, the group's state and who owns
what; at the end how often each answer was heard, who died, and that nothing is broken.

Goals, most important first
1. A scenario can be read: who does what when, and what follows.
2. It runs in the same cluster, with the same checks, as random runs do.

Constraints: one group, one topic "t" of three partitions unless a scenario has others, one partition of
`__consumer_offsets`, whose replicas begin with broker 0. Seed, plan and faults are fixed.

Example: `GroupLook(40_000, coordinator=1, state="STABLE")`;
`Heard("OffsetCommitResponse", ErrorCode.UNKNOWN_MEMBER_ID)`.

Left out: scenarios whose brokers are well; `replication.groups.alone` has these.

Source: ours; each scenario names its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.ids import NO_LEADER, BrokerId
from broker.units import MINUTE_MS, DurationMs
from replication.checkers import Finding
from replication.groups.extension import GroupsExtension
from replication.groups.layout import Layout
from replication.groups.plan import GroupsPlan, MemberPlan
from replication.roles.messages import NodeId
from replication.roles.settings import RoleSettings
from replication.scenarios.verdict import Verdict
from replication.simulation.cluster import Cluster
from replication.simulation.faults import Fault
from replication.simulation.options import Options, quiet
from replication.simulation.run import run
from replication.simulation.trace import Tell, silent

GROUP_ID: Final = "group"
_SEED: Final = 1
_NEVER_ENDS: Final = 1_000_000


@attrs.frozen
class GroupLook:
    """What must be at a time; None is not looked at. `owned` are partitions by member, "t-0" and so on."""

    at_ms: int
    coordinator: int | None = None
    state: str | None = None
    generation: int | None = None
    owned: Mapping[str, tuple[str, ...]] | None = None


@attrs.frozen
class Heard:
    """How often members must have heard an answer of a kind with an error code; `member` None is any."""

    kind: str
    error: ErrorCode
    count_min: int = 1
    count_max: int = _NEVER_ENDS
    member: str | None = None


@attrs.frozen
class Unheard:
    """What a broker says to a member is lost, from `at_ms` to `until_ms`."""

    at_ms: int
    until_ms: int
    broker: int
    member: str


@attrs.frozen(kw_only=True)
class GroupScenario:
    """One scenario. `deaths` are how many members' programs end by themselves."""

    name: str
    title: str
    how: str
    source: str
    members: tuple[MemberPlan, ...]
    faults: tuple[Fault, ...] = ()
    unheard: tuple[Unheard, ...] = ()
    looks: tuple[GroupLook, ...] = ()
    heard: tuple[Heard, ...] = ()
    deaths: int = 0
    topics: tuple[tuple[str, int], ...] = (("t", 3),)
    role_settings: RoleSettings = attrs.field(default=RoleSettings(produce_ms_max=DurationMs(5_000)))
    load_ms_max: DurationMs = attrs.field(default=DurationMs(1_500))
    """How long a coordinator may take to read its partition."""
    duration_ms: DurationMs = attrs.field(default=DurationMs(2 * MINUTE_MS))

    def options(self) -> Options:
        """Return the options that the scenario runs with."""
        return attrs.evolve(
            quiet(_SEED, self.duration_ms),
            partitions=sum(count for _, count in self.topics),
            internal_partitions=1,
            role_settings=self.role_settings,
            name=self.name,
        )

    def play(self, tell: Tell = silent) -> Verdict:
        """Run the scenario and hold it against what it says."""
        options = self.options()
        plan = GroupsPlan(layout=Layout(self.topics, 1), members=self.members, load_ms_max=self.load_ms_max)
        groups = GroupsExtension(options, plan)
        stage = _Stage(self, groups)
        outcome = run(options, self.faults, tell, extension=stage)
        told = f"{outcome.event_count:,} events; {'; '.join(groups.counts.lines())}"
        findings = tuple(str(finding) for finding in outcome.findings[:1])
        return Verdict(told, (*stage.differences, *_heard(self, groups), *findings))


class _Stage:
    """A scenario's groups, with what befalls the network, and the looks."""

    def __init__(self, scenario: GroupScenario, groups: GroupsExtension) -> None:
        self.differences: list[str] = []
        self._scenario = scenario
        self._groups = groups

    def join(self, cluster: Cluster) -> None:
        """Take part in a run."""
        self._groups.join(cluster)
        for look in self._scenario.looks:
            cluster.at(look.at_ms, partial(self._look, cluster, look))
        for unheard in self._scenario.unheard:
            node = next(each.node for each in self._groups.members if each.plan.spec.name == unheard.member)
            way = NodeId(unheard.broker), node
            cluster.at(unheard.at_ms, partial(cluster.network.cut, *way))
            cluster.at(unheard.until_ms, partial(cluster.network.heal, *way))

    def missing(self, cluster: Cluster) -> str | None:
        """Return what the groups miss."""
        return self._groups.missing(cluster)

    def findings(self, cluster: Cluster) -> Sequence[Finding]:
        """Return what was found in the groups."""
        return self._groups.findings(cluster)

    def _look(self, cluster: Cluster, look: GroupLook) -> None:
        seen = self._seen(cluster)
        for name in ("coordinator", "state", "generation", "owned"):
            expected = getattr(look, name)
            if expected is not None and getattr(seen, name) != expected:
                self.differences.append(f"at {look.at_ms} ms {name} is {getattr(seen, name)}, expected {expected}")

    def _seen(self, cluster: Cluster) -> GroupLook:
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
        return GroupLook(cluster.now_ms, coordinator, state, generation, owned)


def _heard(scenario: GroupScenario, groups: GroupsExtension) -> Iterator[str]:
    """Yield which answers were heard too rarely or too often, and deaths that were not expected."""
    answers = groups.counts.answers
    for wanted in scenario.heard:
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
