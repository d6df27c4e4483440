"""List what settings were before a release changed them: defaults, bounds, and what a list may hold.

What it decides: how the rows of the catalog, which are the newest release's, read in an older one.

How: a change says the first release that has the newer form and what the fields were before it. A setting's form in
a release is the newest, with the changes that came after that release undone, newest first. Releases that add, remove
or discourage a setting stand in its row: `since`, `until`, `deprecated`.

Example: the coordinator's linger had two defaults before today's.

    >>> for change in changes_of("group.coordinator.append.linger.ms"):
    ...     print(change.before, dict(change.was), change.source)
    4.2 {'default': 5, 'minimum': 0} KAFKA-19826
    4.0 {'default': 10} Kafka pull request 18274

Left out: changes before 3.9, the oldest release whose ConfigDefs are compared; settings in other files of the catalog
say in their sentence what was otherwise long ago.

Source: the released ConfigDefs of 3.9.2, 4.0.1, 4.1.2, 4.2.1 and 4.3.1; the KIPs and issues named in each row.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from broker.config.setting import BY_DURATION, LONG_MAX, Setting, ValueType
from broker.releases import Release

OLDEST_SETTINGS: Final = Release("3.9")
"""The oldest release whose settings are known."""


@attrs.frozen
class Change:
    """Hold the fields of the settings `names` as they were before a release, and the source of the change."""

    before: Release
    names: tuple[str, ...]
    source: str
    was: tuple[tuple[str, Any], ...]


def _change(before: str, names: str, source: str, **was: Any) -> Change:
    return Change(Release(before), tuple(names.split()), source, tuple(was.items()))


_QUORUM: Final = " ".join(
    f"controller.quorum.{name}.ms"
    for name in (
        *("append.linger", "election.backoff.max", "election.timeout"),
        *("fetch.timeout", "request.timeout", "retry.backoff"),
    )
)
_ASSIGNORS: Final = "org.apache.kafka.coordinator.group.assignor"
_TIMESTAMPS: Final = "log.message.timestamp.after.max.ms message.timestamp.after.max.ms"
_PROTOCOLS: Final = "group.coordinator.rebalance.protocols"
_LINGER: Final = "group.coordinator.append.linger.ms"
_POLICIES: Final = "log.cleanup.policy cleanup.policy"

_SHARE_LINGER: Final = "share.coordinator.append.linger.ms"
_SNAPSHOTS: Final = "share.coordinator.snapshot.update.records.per.snapshot"
_LOCKS: Final = "group.share.partition.max.record.locks"

CHANGES: Final[tuple[Change, ...]] = (
    _change("4.3", _SNAPSHOTS, "ShareCoordinatorConfig", maximum=None),
    _change("4.2", _SHARE_LINGER, "ShareCoordinatorConfig", default=5, minimum=0),
    _change("4.2", "group.share.assignors", "KIP-1161", allows_empty=True, allows_repeats=True),
    _change("4.2", _LINGER, "KAFKA-19826", default=5, minimum=0),
    _change("4.2", f"{_PROTOCOLS} group.consumer.assignors", "KIP-1161", allows_empty=True, allows_repeats=True),
    _change("4.2", _POLICIES, "KIP-1161", allows_repeats=True),
    _change("4.2", "num.replica.fetchers", "ReplicationConfigs", minimum=None),
    _change("4.1", _QUORUM, "QuorumConfig", minimum=None),
    _change("4.1", "metadata.log.segment.bytes", "KRaftConfigs", minimum=12),
    _change("4.1", "segment.bytes", "KIP-1030", minimum=14),
    _change("4.1", _PROTOCOLS, "KIP-1071", default=("classic", "consumer"), allowed=("consumer", "classic", "share")),
    _change("4.1", _SHARE_LINGER, "ShareCoordinatorConfig", default=10),
    _change("4.1", _LOCKS, "ShareGroupConfig", default=200),
    _change("4.1", "share.auto.offset.reset", "GroupConfig", allowed=("earliest", "latest", BY_DURATION)),
    _change("4.0", "group.share.max.size", "ShareGroupConfig", type=ValueType.SHORT, minimum=10),
    _change("4.0", "group.share.record.lock.duration.ms", "ShareGroupConfig", maximum=60_000),
    _change("4.0", _PROTOCOLS, "KIP-848", default=("classic",), allowed=("consumer", "classic", "share", "unknown")),
    _change("4.0", _LINGER, "Kafka pull request 18274", default=10),
    _change("4.0", _TIMESTAMPS, "KIP-1030", default=LONG_MAX),
    _change("4.0", "log.segment.bytes", "KIP-1030", minimum=14),
    _change("4.0", "num.recovery.threads.per.data.dir", "KIP-1030", default=1),
    _change("4.0", "group.coordinator.threads", "GroupCoordinatorConfig", default=1),
    _change("4.0", "group.coordinator.new.enable", "KIP-848", default=False),
    _change(
        "4.0",
        "group.consumer.assignors",
        "KIP-848",
        default=(f"{_ASSIGNORS}.UniformAssignor", f"{_ASSIGNORS}.RangeAssignor"),
    ),
)
"""Every change, the newest first."""


def changes_of(name: str) -> tuple[Change, ...]:
    """Return the changes of the settings called `name`, the newest first."""
    return tuple(change for change in CHANGES if name in change.names)


def has(setting: Setting, release: Release) -> bool:
    """Return whether a release has the setting."""
    is_added = not setting.since or Release(setting.since) <= release
    return is_added and (not setting.until or release <= Release(setting.until))


def form_in(setting: Setting, release: Release) -> Setting:
    """Return the form that a setting has in a release, from the form that it has in the newest."""
    for change in changes_of(setting.name):
        if release < change.before:
            setting = attrs.evolve(setting, **dict(change.was))
    if setting.deprecated and release < Release(setting.deprecated):
        setting = attrs.evolve(setting, deprecated="")
    return setting
