"""Draw the members of a run's groups, and the events of each member, from the run's seed.

Constraints: a plan depends on the options alone. All members start within the first seconds; a member that crashes or
closes is started again, and all run at the end. The last event is over before the safety phase ends.

Source: ours; the kinds of events are those of `replication.groups.common.events`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

import attrs

from broker.draws import exponential
from broker.entropy import RandomSource, SplitMix64, derive
from broker.errors import UsageError
from broker.group.members import InstanceId
from broker.group.service import ServiceOptions
from broker.releases import NEWEST, Release
from broker.units import DurationMs, TimeMs
from broker.wording import counted
from replication.groups.client.options import ClientOptions, ClientSpec
from replication.groups.client.protocols import DEFAULT_ASSIGNORS, GroupProtocol
from replication.groups.client.subscription_state import Feed
from replication.groups.common.events import CLUSTER_KINDS, Event, EventKind
from replication.groups.layout import Layout
from replication.simulation.options import Options

GROUP_COUNT_MAX: Final = 50
_PLAN_STREAM: Final = 6
_START_MS: Final = 2_000
_START_MS_SPREAD: Final = 8_000
_ACT_MS_MEAN: Final = 60_000
_LASTING_MS: Final = (500, 40_000)
_FREEZE_MS: Final = (1_000, 60_000)
_BETWEEN_MS: Final = 1_000
_OFFSETS_PARTITION_COUNT: Final = 3
_STATIC_ONE_IN: Final = 4
_MAX_POLL_MS: Final = DurationMs(30_000)
"""Less than members may dawdle, so that some of them are too late."""

RESTART_MS: Final = DurationMs(5_000)
"""The time after which a supervisor restarts a process that ended by itself."""
TRACE_TEXTS: Final[Mapping[EventKind, str]] = MappingProxyType(
    {
        EventKind.START: "starts",
        EventKind.CRASH: "dies",
        EventKind.CLOSE: "leaves",
        EventKind.STALL: "does not poll",
        EventKind.FREEZE: "stands still",
        EventKind.CRASH_LEADING: "dies once it leads",
        EventKind.HOLD_COMMITS: "commits late",
        EventKind.LOSE_ANSWER: "misses its next heartbeat's response",
    }
)
"""What a run's trace says of each kind of event of a member."""


@attrs.frozen
class MemberPlan:
    """Describe a group's member: its spec, its protocol, and its events in order of time."""

    spec: ClientSpec
    protocol: GroupProtocol
    events: tuple[Event, ...]
    feed: Feed | None = None
    """The records that it reads; None for those of the cluster."""
    restart_ms: DurationMs | None = RESTART_MS
    """The time after which a supervisor restarts a process that ended by itself; None for never."""

    @property
    def stays(self) -> bool:
        """Return whether the member runs at the end of the plan."""
        ends = [
            event.kind for event in self.events if event.kind in (EventKind.START, EventKind.CRASH, EventKind.CLOSE)
        ]
        return bool(ends) and ends[-1] is EventKind.START


@attrs.frozen(kw_only=True)
class GroupsPlan:
    """Hold all members of a run, the layout of their topics, and the release of the coordinators."""

    layout: Layout
    members: tuple[MemberPlan, ...]
    load_ms_max: DurationMs = attrs.field(default=DurationMs(1_500))
    release: Release = NEWEST
    coordinator: ServiceOptions | None = None
    """The coordinators' settings; None for Kafka's defaults."""

    @property
    def group_ids(self) -> tuple[str, ...]:
        """Return the group ids, in order."""
        return tuple(sorted({member.spec.group_id for member in self.members}))

    def lines(self) -> Iterator[str]:
        """Yield one line per group: its protocol, its member count, and the partition that stores it."""
        for group_id in self.group_ids:
            members = [member for member in self.members if member.spec.group_id == group_id]
            yield (
                f"{group_id}: {members[0].protocol.value}, {counted(len(members), 'member')}, kept by partition "
                f"{self.layout.of_group(group_id)}"
            )


def with_groups(options: Options) -> Options:
    """Return options with partitions for `__consumer_offsets`."""
    return attrs.evolve(options, internal_partitions=_OFFSETS_PARTITION_COUNT)


def draw_plan(options: Options, group_count: int, release: Release = NEWEST) -> GroupsPlan:
    """Return the groups of a run, drawn from its seed; raises UsageError for a count out of bounds."""
    if not 1 <= group_count <= GROUP_COUNT_MAX:
        raise UsageError(
            f"the number of groups is {group_count}; allowed are whole numbers from 1 to {GROUP_COUNT_MAX}"
        )
    layout = Layout(_topics(options.partitions), options.internal_partitions)
    members: list[MemberPlan] = []
    for number in range(group_count):
        entropy = SplitMix64(derive(options.seed, _PLAN_STREAM, number))
        members += _members(number, layout, options, entropy)
    return GroupsPlan(layout=layout, members=tuple(members), release=release)


def _topics(partition_count: int) -> tuple[tuple[str, int], ...]:
    """Return one topic, or two for two and more partitions, the first with the greater half."""
    if partition_count == 1:
        return (("topic-a", 1),)
    return (("topic-a", partition_count - partition_count // 2), ("topic-b", partition_count // 2))


def _members(number: int, layout: Layout, options: Options, entropy: RandomSource) -> Iterator[MemberPlan]:
    """Yield two to four members of a group, all of one protocol, each on the first topic or on all."""
    protocol = list(GroupProtocol)[entropy.next_int_bound(len(GroupProtocol))]
    names = tuple(name for name, _ in layout.topics)
    for place in range(2 + entropy.next_int_bound(3)):
        is_static = entropy.next_int_bound(_STATIC_ONE_IN) == 0
        reads_all = place == 0 or entropy.next_int_bound(2) == 0
        spec = ClientSpec(
            name=f"group-{number}-member-{place}",
            group_id=f"group-{number}",
            topics=names if reads_all else names[:1],
            assignors=(DEFAULT_ASSIGNORS[protocol],),
            instance_id=InstanceId(f"instance-{number}-{place}") if is_static else None,
            options=ClientOptions(max_poll_interval_ms=_MAX_POLL_MS),
        )
        yield MemberPlan(spec, protocol, tuple(_events(options, entropy)))


def _events(options: Options, entropy: RandomSource) -> Iterator[Event]:
    at_ms = _START_MS + entropy.next_int_bound(_START_MS_SPREAD)
    yield Event(TimeMs(at_ms), EventKind.START)
    kinds = [kind for kind in CLUSTER_KINDS if kind is not EventKind.START]
    while True:
        at_ms += _BETWEEN_MS + exponential(entropy, _ACT_MS_MEAN)
        kind = kinds[entropy.next_int_bound(len(kinds))]
        least, most = _FREEZE_MS if kind in (EventKind.FREEZE, EventKind.STALL) else _LASTING_MS
        for_ms = DurationMs(least + entropy.next_int_bound(most - least + 1))
        if at_ms + for_ms >= options.duration_ms:
            return
        yield Event(TimeMs(at_ms), kind, for_ms)
        at_ms += for_ms
        if kind in (EventKind.CRASH, EventKind.CLOSE):
            yield Event(TimeMs(at_ms), EventKind.START)
