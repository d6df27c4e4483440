"""List the settings of streams groups, for a broker and for single groups (KIP-1071).

No model here runs streams groups. The table serves to check settings and to say what a release has.

Example: a group may be given two standby replicas at most, however many it asks for.

    >>> [one.default for one in STREAMS_GROUPS if one.name == "group.streams.max.standby.replicas"]
    [2]

Left out: what a setting was before the newest release, which `broker.config.changes` says.

Source: Kafka 4.3.1, GroupCoordinatorConfig and GroupConfig.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from broker.config.build import group_of_broker, whole
from broker.config.setting import INT_MAX, Setting

_GROUP: Final = "GroupCoordinatorConfig, KIP-1071"
_INTERVAL: Final = "GroupCoordinatorConfig, KIP-1263"

_counted = partial(whole, source=_GROUP, minimum=0, since="4.1")
_timed = partial(whole, source=_GROUP, minimum=1, since="4.1")
_spaced = partial(whole, source=_INTERVAL, minimum=0, since="4.3")

STREAMS_GROUPS: Final[tuple[Setting, ...]] = (
    _timed("group.streams.session.timeout.ms", 45_000, "A member of a streams group silent for longer is removed."),
    _timed("group.streams.min.session.timeout.ms", 45_000, "Shortest session that a streams group may be given."),
    _timed("group.streams.max.session.timeout.ms", 60_000, "Longest session that a streams group may be given."),
    _timed("group.streams.heartbeat.interval.ms", 5000, "How often members of streams groups report."),
    _timed("group.streams.min.heartbeat.interval.ms", 5000, "Shortest interval that a streams group may be given."),
    _timed("group.streams.max.heartbeat.interval.ms", 15_000, "Longest interval that a streams group may be given."),
    _timed("group.streams.max.size", INT_MAX, "Members of a streams group."),
    _counted("group.streams.num.standby.replicas", 0, "Standby replicas of each task."),
    _counted("group.streams.max.standby.replicas", 2, "Most standby replicas that a streams group may be given."),
    _counted(
        "group.streams.initial.rebalance.delay.ms",
        3000,
        "An empty streams group waits so long for further members.",
        since="4.2",
    ),
    _spaced("group.streams.assignment.interval.ms", 1000, "Shortest time between two assignments of a streams group."),
    _spaced("group.streams.min.assignment.interval.ms", 0, "Shortest such time that a streams group may be given."),
    _spaced("group.streams.max.assignment.interval.ms", 15_000, "Longest such time that a streams group may be given."),
)
"""The broker's settings of streams groups."""

_ONE: Final = "GroupConfig, KIP-1071"

STREAMS_OVERRIDES: Final[tuple[Setting, ...]] = (
    group_of_broker("streams.session.timeout.ms", 45_000, "A member silent for longer is removed.", _ONE, 1, "4.1"),
    group_of_broker("streams.heartbeat.interval.ms", 5000, "How often members of this group report.", _ONE, 1, "4.1"),
    group_of_broker("streams.num.standby.replicas", 0, "Standby replicas of each task.", _ONE, 0, "4.1"),
    group_of_broker(
        "streams.initial.rebalance.delay.ms", 3000, "How long an empty group waits for members.", _ONE, 0, "4.2"
    ),
    group_of_broker(
        "streams.assignment.interval.ms",
        1000,
        "Shortest time between two assignments.",
        "GroupConfig, KIP-1263",
        0,
        "4.3",
    ),
)
"""What a single streams group may have for itself."""
