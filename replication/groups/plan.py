"""Lay out a run's topics and groups, and draw its members and the events of each member from the run's seed.

Topics take the ordinary partitions in turn; the internal partitions after them are `__consumer_offsets`. Members of
cooperative groups are dynamic: with static ones Kafka itself gives a partition to two members, or leaves it to nobody
until the next rebalance (scenario S74; KIP-345 with KIP-429, no ticket known).

    >>> from broker.ids import PartitionId
    >>> layout = Layout((("a", 2), ("b", 1)), 3)
    >>> layout.number_of(TopicPartition("b", PartitionId(0))), layout.of_group("my-group")
    (2, 3)

Source: Kafka's GroupCoordinatorService.partitionFor for the partition of a group; the rest is ours.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

import attrs

from broker.draws import exponential
from broker.entropy import RandomSource, SplitMix64, derive
from broker.errors import UsageError
from broker.group.members import InstanceId
from broker.group.routing import offsets_partition
from broker.group.service import ServiceOptions
from broker.ids import TopicPartition
from broker.releases import NEWEST, Release
from broker.units import MINUTE_MS, DurationMs, SizeBytes, TimeMs
from broker.wording import counted
from replication.groups.client.assigning import DEFAULT_ASSIGNORS, GroupProtocol
from replication.groups.client.client import Feed
from replication.groups.client.link import ClientOptions, ClientSpec
from replication.simulation.options import Options


@attrs.frozen
class Layout:
    """Hold topics with partition counts, and the number of partitions of `__consumer_offsets`."""

    topics: tuple[tuple[str, int], ...]
    offsets_partition_count: int

    @property
    def first_internal(self) -> int:
        """Return the number of the first partition of `__consumer_offsets`, after those of all topics."""
        return sum(count for _, count in self.topics)

    def is_internal(self, number: int) -> bool:
        """Return whether a number is that of a partition of `__consumer_offsets`.

        Topics that are deleted and created again get numbers behind those of all others.
        """
        return 0 <= number - self.first_internal < self.offsets_partition_count

    @property
    def counts(self) -> Mapping[str, int]:
        """Return the partition count of each topic."""
        return dict(self.topics)

    def number_of(self, partition: TopicPartition) -> int:
        """Return the cluster-wide number of a topic's partition."""
        before = 0
        for name, count in self.topics:
            if name == partition.topic:
                assert partition.partition < count, partition
                return before + partition.partition
            before += count
        raise AssertionError(f"there is no topic {partition.topic}")

    def of_group(self, group_id: str) -> int:
        """Return the cluster-wide number of the `__consumer_offsets` partition that stores a group."""
        return self.first_internal + offsets_partition(group_id, self.offsets_partition_count)


class EventKind(enum.Enum):
    """Name the kinds of events; the value is used in files."""

    START = "start"
    """A member's process starts, or starts again."""

    CLOSE = "close"
    """A member's process closes its consumer: it leaves its group, unless it is static."""

    CRASH = "crash"
    """A member's process dies without a word to the coordinator."""

    BOUNCE = "bounce"
    """A member's process closes its consumer, and starts again after `for_ms`."""

    STALL = "stall"
    """A member's application does not poll for `for_ms`; the consumer's own threads go on."""

    FREEZE = "freeze"
    """A member's whole process stands still for `for_ms`, as in a long garbage collection."""

    CRASH_LEADING = "crash-leading"
    """A member's process dies when its JoinGroup response says that it leads, before it assigns."""

    TWIN = "twin"
    """A second process starts with the member's group.instance.id."""

    HOLD_COMMITS = "hold-commits"
    """A member's commits of the next `for_ms` arrive only after that time."""

    LOSE_ANSWER = "lose-answer"
    """The response to a member's next heartbeat is lost; in a consumer group, to the next that reports what it owns."""

    ADD_PARTITIONS = "add-partitions"
    """A topic has `count` partitions from now on."""

    FAILOVER = "failover"
    """The coordinator's broker dies, and starts again after `for_ms`."""


CLUSTER_KINDS: Final = (EventKind.START, EventKind.CRASH, EventKind.CLOSE, EventKind.STALL, EventKind.FREEZE)
"""The kinds that are drawn for members in a cluster under faults."""


@attrs.frozen
class Event:
    """Describe one event; `target` names a member or a topic, and is empty if the event is listed with its member."""

    at_ms: TimeMs
    kind: EventKind
    for_ms: DurationMs = attrs.field(default=DurationMs(0))
    target: str = ""
    count: int = 0

    def __str__(self) -> str:
        lasting = f" for {self.for_ms:,} ms" if self.for_ms else ""
        count = f" to {self.count}" if self.count else ""
        return f"{self.kind.value} {self.target}{count}{lasting}".replace("  ", " ")


GROUP_COUNT_MAX: Final = 50
_PLAN_STREAM: Final = 6
_START_MS: Final = 2_000
_START_MS_SPREAD: Final = 8_000
_BETWEEN_MS: Final = 1_000
_OFFSETS_PARTITION_COUNT: Final = 3
_SEGMENT_BYTES_MIN: Final = SizeBytes(8_000)
"""A batch that is larger than a segment is refused each time: a group would keep members for good."""


@attrs.frozen(kw_only=True)
class _Pace:
    """Hold how often and for how long something happens to a member, in ms, and the timeouts of a group.

    Of `static_in_four` of four members the processes are static.
    """

    act_ms_mean: int
    lasting_ms: tuple[int, int]
    freeze_ms: tuple[int, int]
    kinds: tuple[EventKind, ...]
    static_in_four: int
    timeouts: tuple[ClientOptions, ...]


_MAX_POLL_MS: Final = DurationMs(30_000)
"""Less than members may dawdle, so that some of them are too late."""
_ACTS: Final = tuple(kind for kind in CLUSTER_KINDS if kind is not EventKind.START)
_CALM: Final = _Pace(
    act_ms_mean=60_000,
    lasting_ms=(500, 40_000),
    freeze_ms=(1_000, 60_000),
    kinds=_ACTS,
    static_in_four=1,
    timeouts=(ClientOptions(max_poll_interval_ms=_MAX_POLL_MS),),
)
_HASTY: Final = _Pace(
    act_ms_mean=6_000,
    lasting_ms=(200, 10_000),
    freeze_ms=(1_000, 16_000),
    kinds=(*_ACTS, EventKind.CRASH, EventKind.HOLD_COMMITS, EventKind.HOLD_COMMITS, EventKind.LOSE_ANSWER),
    static_in_four=2,
    timeouts=(
        ClientOptions(session_timeout_ms=DurationMs(8_000), max_poll_interval_ms=DurationMs(12_000)),
        ClientOptions(session_timeout_ms=DurationMs(20_000), max_poll_interval_ms=DurationMs(6_000)),
        ClientOptions(max_poll_interval_ms=_MAX_POLL_MS),
    ),
)
"""Sessions longer than a rebalance keep a static member that is away; shorter ones end while a rebalance goes on."""
_HASTY_MS_MAX: Final = 2 * MINUTE_MS
"""The longest run that is hasty, so that as much happens in a minute as elsewhere in many."""
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
    """Return options with partitions for `__consumer_offsets`, whose segments hold a group's largest batch."""
    segment_bytes = max(options.segment_bytes, _SEGMENT_BYTES_MIN)
    return attrs.evolve(options, internal_partitions=_OFFSETS_PARTITION_COUNT, segment_bytes=segment_bytes)


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
    pace = _HASTY if options.duration_ms <= _HASTY_MS_MAX else _CALM
    for place in range(2 + entropy.next_int_bound(3)):
        is_static = entropy.next_int_bound(4) < pace.static_in_four and protocol is not GroupProtocol.COOPERATIVE
        reads_all = place == 0 or entropy.next_int_bound(2) == 0
        spec = ClientSpec(
            name=f"group-{number}-member-{place}",
            group_id=f"group-{number}",
            topics=names if reads_all else names[:1],
            assignors=(DEFAULT_ASSIGNORS[protocol],),
            instance_id=InstanceId(f"instance-{number}-{place}") if is_static else None,
            options=pace.timeouts[(options.seed + number) % len(pace.timeouts)],
        )
        yield MemberPlan(spec, protocol, tuple(_events(options, pace, entropy)))


def _events(options: Options, pace: _Pace, entropy: RandomSource) -> Iterator[Event]:
    at_ms = _START_MS + entropy.next_int_bound(_START_MS_SPREAD)
    yield Event(TimeMs(at_ms), EventKind.START)
    while True:
        at_ms += _BETWEEN_MS + exponential(entropy, pace.act_ms_mean)
        kind = pace.kinds[entropy.next_int_bound(len(pace.kinds))]
        least, most = pace.freeze_ms if kind in (EventKind.FREEZE, EventKind.STALL) else pace.lasting_ms
        for_ms = DurationMs(least + entropy.next_int_bound(most - least + 1))
        if at_ms + for_ms >= options.duration_ms:
            return
        yield Event(TimeMs(at_ms), kind, for_ms)
        at_ms += for_ms
        if kind in (EventKind.CRASH, EventKind.CLOSE):
            yield Event(TimeMs(at_ms), EventKind.START)
