"""List the settings of share groups and of their coordinator, for a broker and for single groups (KIP-932).

No model here runs share groups. The table serves to check settings and to say what a release has.

Example: a group may be given between 15 and 60 seconds to acknowledge a record.

    >>> [one.default for one in SHARE_GROUPS if "record.lock.duration" in one.name]
    [30000, 15000, 60000]

Left out: what a setting was before the newest release, which `broker.config.changes` says.

Source: Kafka 4.3.1, GroupCoordinatorConfig, ShareGroupConfig, ShareCoordinatorConfig and GroupConfig; for what newer
releases no longer have, 3.9.2, 4.0.1 and 4.2.1.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from broker.config.build import flag, group_flag, group_of_broker, group_text, small, text, texts, whole
from broker.config.setting import BY_DURATION, INT_MAX, Setting
from broker.units import KIB, MIB

_GROUP: Final = "GroupCoordinatorConfig, KIP-932"
_INTERVAL: Final = "GroupCoordinatorConfig, KIP-1263"
_SHARE: Final = "ShareGroupConfig, KIP-932"
_LIMITS: Final = "ShareGroupConfig"
_STATE: Final = "ShareCoordinatorConfig, KIP-932"
_ONE: Final = "GroupConfig, KIP-932"

_timed = partial(whole, source=_GROUP, minimum=1, since="3.9")
_spaced = partial(whole, source=_INTERVAL, minimum=0, since="4.3")

SHARE_GROUPS: Final[tuple[Setting, ...]] = (
    _timed("group.share.session.timeout.ms", 45_000, "A member of a share group silent for longer is removed."),
    _timed("group.share.min.session.timeout.ms", 45_000, "Shortest session that a share group may be given."),
    _timed("group.share.max.session.timeout.ms", 60_000, "Longest session that a share group may be given."),
    _timed("group.share.heartbeat.interval.ms", 5000, "How often members of share groups report."),
    _timed("group.share.min.heartbeat.interval.ms", 5000, "Shortest interval that a share group may be given."),
    _timed("group.share.max.heartbeat.interval.ms", 15_000, "Longest interval that a share group may be given."),
    whole("group.share.max.size", 200, "Members of a share group.", _GROUP, minimum=1, maximum=1000, since="3.9"),
    texts(
        "group.share.assignors",
        ("simple",),
        "The one assignor of share groups.",
        _GROUP,
        allows_empty=False,
        since="4.1",
    ),
    whole(
        "group.share.initialize.retry.interval.ms",
        30_000,
        "Pause before the state of a partition is made again.",
        _GROUP,
        minimum=1,
        since="4.2",
        internal=True,
    ),
    _spaced("group.share.assignment.interval.ms", 1000, "Shortest time between two assignments of a share group."),
    _spaced("group.share.min.assignment.interval.ms", 0, "Shortest such time that a share group may be given."),
    _spaced("group.share.max.assignment.interval.ms", 15_000, "Longest such time that a share group may be given."),
    whole(
        "group.share.delivery.count.limit",
        5,
        "How often a record is delivered at most.",
        _SHARE,
        minimum=2,
        maximum=10,
        since="3.9",
    ),
    whole(
        "group.share.min.delivery.count.limit",
        2,
        "Fewest deliveries that a share group may be given.",
        _LIMITS,
        minimum=2,
        maximum=5,
        since="4.3",
    ),
    whole(
        "group.share.max.delivery.count.limit",
        10,
        "Most deliveries that a share group may be given.",
        _LIMITS,
        minimum=5,
        maximum=25,
        since="4.3",
    ),
    whole(
        "group.share.record.lock.duration.ms",
        30_000,
        "How long a member may take to acknowledge a record.",
        _SHARE,
        minimum=1000,
        maximum=3_600_000,
        since="3.9",
    ),
    whole(
        "group.share.min.record.lock.duration.ms",
        15_000,
        "Shortest such time that a share group may be given.",
        _SHARE,
        minimum=1000,
        maximum=30_000,
        since="3.9",
    ),
    whole(
        "group.share.max.record.lock.duration.ms",
        60_000,
        "Longest such time that a share group may be given.",
        _SHARE,
        minimum=30_000,
        maximum=3_600_000,
        since="3.9",
    ),
    whole(
        "group.share.partition.max.record.locks",
        2000,
        "Records of one partition that a share group may hold unacknowledged.",
        _SHARE,
        minimum=100,
        maximum=10_000,
        since="3.9",
    ),
    whole(
        "group.share.min.partition.max.record.locks",
        100,
        "Fewest such records that a share group may be given.",
        _LIMITS,
        minimum=100,
        maximum=2000,
        since="4.3",
    ),
    whole(
        "group.share.max.partition.max.record.locks",
        4000,
        "Most such records that a share group may be given.",
        _LIMITS,
        minimum=2000,
        maximum=10_000,
        since="4.3",
    ),
    whole("group.share.max.share.sessions", 2000, "Share sessions of a broker.", _SHARE, minimum=1, since="4.1"),
    text(
        "group.share.persister.class.name",
        "org.apache.kafka.server.share.persister.DefaultStatePersister",
        "Class that stores the state of share groups.",
        _SHARE,
        since="4.0",
        internal=True,
    ),
    whole("share.fetch.purgatory.purge.interval.requests", 1000, "As the fetch purgatory's.", _SHARE, since="4.0"),
    flag("group.share.enable", False, "Whether share groups are on.", _SHARE, until="4.2", internal=True, since="3.9"),
    small(
        "group.share.max.groups",
        10,
        "Share groups of a broker.",
        _SHARE,
        minimum=1,
        maximum=100,
        until="4.0",
        since="3.9",
    ),
    whole(
        "share.fetch.max.fetch.records",
        INT_MAX,
        "Records of one share fetch.",
        _SHARE,
        since="4.0",
        until="4.0",
        internal=True,
    ),
)
"""The broker's settings of share groups."""

_state = partial(whole, source=_STATE, minimum=1, since="4.0")

SHARE_COORDINATOR: Final[tuple[Setting, ...]] = (
    _state("share.coordinator.threads", 1, "Threads of the share coordinator."),
    _state("share.coordinator.write.timeout.ms", 5000, "A write fails when replicas take longer."),
    _state("share.coordinator.load.buffer.size", 5 * MIB, "Bytes read at a time when state is loaded."),
    whole(
        "share.coordinator.append.linger.ms",
        -1,
        "How long the coordinator gathers records; -1 lets it decide.",
        _STATE,
        minimum=-1,
        since="4.0",
    ),
    whole(
        "share.coordinator.cached.buffer.max.bytes",
        MIB + 12,
        "Greatest buffer that the coordinator keeps for its next batch.",
        "ShareCoordinatorConfig",
        minimum=512 * KIB,
        since="4.3",
    ),
    whole(
        "share.coordinator.snapshot.update.records.per.snapshot",
        500,
        "Update records after which a snapshot is written.",
        _STATE,
        minimum=0,
        maximum=500,
        since="4.0",
    ),
    _state(
        "share.coordinator.cold.partition.snapshot.interval.ms",
        300_000,
        "How often idle partitions get a snapshot.",
        since="4.1",
        internal=True,
    ),
    _state("share.coordinator.state.topic.num.partitions", 50, "Partitions of __share_group_state."),
    small(
        "share.coordinator.state.topic.replication.factor",
        3,
        "Replicas of __share_group_state.",
        _STATE,
        minimum=1,
        since="4.0",
    ),
    small("share.coordinator.state.topic.min.isr", 2, "Its min.insync.replicas.", _STATE, minimum=1, since="4.0"),
    _state("share.coordinator.state.topic.segment.bytes", 100 * MIB, "Its segments' size."),
    whole("share.coordinator.state.topic.compression.codec", 0, "Its codec by number; 0 is none.", _STATE, since="4.0"),
    _state(
        "share.coordinator.state.topic.prune.interval.ms",
        300_000,
        "How often records that nobody needs are deleted.",
        internal=True,
    ),
)
"""The broker's settings of the share coordinator, which keeps the state of share groups."""

SHARE_OVERRIDES: Final[tuple[Setting, ...]] = (
    group_of_broker(
        "share.session.timeout.ms", 45_000, "A member of this group silent for longer is removed.", _ONE, 1, "4.0"
    ),
    group_of_broker("share.heartbeat.interval.ms", 5000, "How often members of this group report.", _ONE, 1, "4.0"),
    group_of_broker("share.record.lock.duration.ms", 30_000, "Time to acknowledge a record.", _ONE, 1000, "4.0"),
    group_of_broker(
        "share.delivery.count.limit", 5, "How often a record is delivered at most.", "GroupConfig", 2, "4.3"
    ),
    group_of_broker("share.partition.max.record.locks", 2000, "Unacknowledged records.", "GroupConfig", 100, "4.3"),
    group_of_broker(
        "share.assignment.interval.ms",
        1000,
        "Shortest time between two assignments.",
        "GroupConfig, KIP-1263",
        0,
        "4.3",
    ),
    group_text(
        "share.auto.offset.reset",
        "latest",
        "Where a group without state begins to read a partition.",
        _ONE,
        allowed=("latest", "earliest", BY_DURATION),
        since="4.0",
    ),
    group_text(
        "share.isolation.level",
        "read_uncommitted",
        "Whether records of aborted transactions are delivered.",
        "GroupConfig",
        allowed=("read_committed", "read_uncommitted"),
        since="4.1",
    ),
    group_flag(
        "share.renew.acknowledge.enable",
        True,
        "Whether a member may renew its time to acknowledge.",
        "GroupConfig",
        since="4.3",
    ),
)
"""What a single share group may have for itself."""
