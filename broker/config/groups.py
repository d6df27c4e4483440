"""List the settings of the group coordinator: both group protocols, committed offsets, and single groups.

Left out: share groups and streams groups, which have tables of their own, and the moving of a group from one protocol
to the other.

Source: Kafka 4.3.1, GroupCoordinatorConfig and GroupConfig.
"""

from __future__ import annotations

from typing import Final

from broker.config.build import group_whole, long, small, texts, whole
from broker.config.setting import INT_MAX, Setting
from broker.units import KIB, MIB

_GROUP: Final = "GroupCoordinatorConfig"
_NEXT: Final = "GroupCoordinatorConfig, KIP-848"

GROUPS: Final[tuple[Setting, ...]] = (
    texts(
        "group.coordinator.rebalance.protocols",
        ("classic", "consumer", "streams"),
        "Group protocols that the coordinator speaks.",
        _NEXT,
        allowed=("consumer", "classic", "share", "streams"),
        allows_empty=False,
        since="3.7",
        deprecated="4.3",
    ),
    whole("group.coordinator.threads", 4, "Threads of the coordinator.", _NEXT, minimum=1, since="3.7"),
    whole(
        "group.coordinator.background.threads",
        2,
        "Threads that compute assignments beside the coordinator.",
        "GroupCoordinatorConfig, KIP-1263",
        minimum=1,
        since="4.3",
    ),
    whole(
        "group.coordinator.append.linger.ms",
        -1,
        "How long the coordinator gathers records; -1 lets it decide.",
        _NEXT,
        minimum=-1,
        since="3.9",
    ),
    whole(
        "group.coordinator.cached.buffer.max.bytes",
        MIB + 12,
        "Greatest buffer that the coordinator keeps for its next batch.",
        _GROUP,
        minimum=512 * KIB,
        since="4.3",
    ),
    whole("group.min.session.timeout.ms", 6000, "Shortest session that a classic member may ask for.", _GROUP),
    whole("group.max.session.timeout.ms", 1_800_000, "Longest session that a classic member may ask for.", _GROUP),
    whole(
        "group.initial.rebalance.delay.ms",
        3000,
        "An empty classic group waits so long for further members.",
        f"{_GROUP}, KIP-134",
    ),
    whole("group.max.size", INT_MAX, "Members of a classic group.", f"{_GROUP}, KIP-389", minimum=1),
    whole(
        "group.consumer.session.timeout.ms",
        45_000,
        "A member silent for longer is removed.",
        _NEXT,
        minimum=1,
        since="3.7",
    ),
    whole(
        "group.consumer.min.session.timeout.ms",
        45_000,
        "Shortest session that a group may be given.",
        _NEXT,
        minimum=1,
        since="3.7",
    ),
    whole(
        "group.consumer.max.session.timeout.ms",
        60_000,
        "Longest session that a group may be given.",
        _NEXT,
        minimum=1,
        since="3.7",
    ),
    whole("group.consumer.heartbeat.interval.ms", 5000, "How often members report.", _NEXT, minimum=1, since="3.7"),
    whole(
        "group.consumer.min.heartbeat.interval.ms",
        5000,
        "Shortest interval that a group may be given.",
        _NEXT,
        minimum=1,
        since="3.7",
    ),
    whole(
        "group.consumer.max.heartbeat.interval.ms",
        15_000,
        "Longest interval that a group may be given.",
        _NEXT,
        minimum=1,
        since="3.7",
    ),
    whole("group.consumer.max.size", INT_MAX, "Members of a consumer group.", _NEXT, minimum=1, since="3.7"),
    texts(
        "group.consumer.assignors",
        ("uniform", "range"),
        "Assignors of the broker; the first serves who names none.",
        _NEXT,
        allows_empty=False,
        since="3.7",
    ),
    whole(
        "group.consumer.regex.refresh.interval.ms",
        600_000,
        "How often topics are matched again with a subscription by pattern.",
        _NEXT,
        minimum=10_000,
        since="4.1",
        internal=True,
    ),
    whole(
        "group.consumer.assignment.interval.ms",
        1000,
        "Shortest time between two assignments of a group.",
        "GroupCoordinatorConfig, KIP-1263",
        minimum=0,
        since="4.3",
    ),
    whole(
        "group.consumer.min.assignment.interval.ms",
        0,
        "Shortest such time that a group may be given.",
        "GroupCoordinatorConfig, KIP-1263",
        minimum=0,
        since="4.3",
    ),
    whole(
        "group.consumer.max.assignment.interval.ms",
        15_000,
        "Longest such time that a group may be given.",
        "GroupCoordinatorConfig, KIP-1263",
        minimum=0,
        since="4.3",
    ),
)

OFFSETS: Final[tuple[Setting, ...]] = (
    whole("offsets.topic.num.partitions", 50, "Partitions of __consumer_offsets.", _GROUP, minimum=1),
    small("offsets.topic.replication.factor", 3, "Replicas of __consumer_offsets.", _GROUP, minimum=1),
    whole("offsets.topic.segment.bytes", 100 * MIB, "Its segments' size.", _GROUP, minimum=1),
    whole("offsets.topic.compression.codec", 0, "Its codec by number; 0 is none.", _GROUP),
    whole("offsets.load.buffer.size", 5 * MIB, "Bytes read at a time when offsets are loaded.", _GROUP, minimum=1),
    whole(
        "offsets.retention.minutes",
        10_080,
        "A group's offsets are kept so long after its last member left.",
        f"{_GROUP}, KIP-211",
        minimum=1,
    ),
    long(
        "offsets.retention.check.interval.ms", 600_000, "How often expired offsets are looked for.", _GROUP, minimum=1
    ),
    whole("offsets.commit.timeout.ms", 5000, "A commit fails when replicas take longer.", _GROUP, minimum=1),
    whole("offset.metadata.max.bytes", 4 * KIB, "Greatest text stored beside an offset.", _GROUP),
)

GROUP_OVERRIDES: Final[tuple[Setting, ...]] = (
    group_whole(
        "consumer.session.timeout.ms",
        45_000,
        "A member of this group silent for longer is removed.",
        "GroupConfig, KIP-848",
        minimum=1,
        synonyms=("group.consumer.session.timeout.ms",),
        since="4.0",
    ),
    group_whole(
        "consumer.heartbeat.interval.ms",
        5000,
        "How often members of this group report.",
        "GroupConfig, KIP-848",
        minimum=1,
        synonyms=("group.consumer.heartbeat.interval.ms",),
        since="4.0",
    ),
    group_whole(
        "consumer.assignment.interval.ms",
        1000,
        "Shortest time between two assignments of this group.",
        "GroupConfig, KIP-1263",
        minimum=0,
        synonyms=("group.consumer.assignment.interval.ms",),
        since="4.3",
    ),
)
