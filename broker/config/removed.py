"""List the settings that the newest release no longer has, each with the last release that had it.

Left out: the settings of ZooKeeper and of what else no model reads, which `left_out` names.

Source: Kafka 3.9.2 and 4.0.1, the classes named in each row; MetadataVersion of 3.9.2 for the names of versions.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from broker.config.build import flag, long, small, text, topic_flag, topic_long, topic_text, whole
from broker.config.setting import LONG_MAX, Setting
from broker.units import MIB

_SERVER: Final = "ServerLogConfigs"
_FORMAT: Final = "TopicConfig, KIP-724"
_DIFFERENCE: Final = "A record stamped further off is refused; the two later settings tell past and future apart."
_DOWN: Final = "Batches are written back to the format that an old consumer asks for."

_VERSIONS: Final = (
    *("0.8.0", "0.8.1", "0.8.2", "0.9.0", "0.10.0-IV0", "0.10.0-IV1", "0.10.1-IV0", "0.10.1-IV1"),
    *("0.10.1-IV2", "0.10.2-IV0", "0.11.0-IV0", "0.11.0-IV1", "0.11.0-IV2", "1.0-IV0", "1.1-IV0", "2.0-IV0"),
    *("2.0-IV1", "2.1-IV0", "2.1-IV1", "2.1-IV2", "2.2-IV0", "2.2-IV1", "2.3-IV0", "2.3-IV1", "2.4-IV0"),
    *("2.4-IV1", "2.5-IV0", "2.6-IV0", "2.7-IV0", "2.7-IV1", "2.7-IV2", "2.8-IV0", "2.8-IV1", "3.0-IV0"),
    *("3.0-IV1", "3.1-IV0", "3.2-IV0", "3.3-IV0", "3.3-IV1", "3.3-IV2", "3.3-IV3", "3.4-IV0", "3.5-IV0"),
    *("3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2", "3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3"),
    *("3.7-IV4", "3.8-IV0", "3.9-IV0", "4.0-IV0", "4.0-IV1"),
)

_3_9: Final = "3.9"
_version = partial(text, allowed=_VERSIONS, until=_3_9)

REMOVED: Final[tuple[Setting, ...]] = (
    _version("inter.broker.protocol.version", "3.9-IV0", "Protocol that brokers speak with each other.", "KIP-584"),
    _version("log.message.format.version", "3.0-IV1", "Format in which a leader writes batches.", _SERVER),
    long(
        "log.message.timestamp.difference.max.ms",
        LONG_MAX,
        _DIFFERENCE,
        f"{_SERVER}, KIP-937",
        minimum=0,
        until=_3_9,
        deprecated="3.6",
    ),
    flag("log.message.downconversion.enable", True, _DOWN, f"{_SERVER}, KIP-283", until=_3_9),
    whole("controlled.shutdown.max.retries", 3, "Tries of a stopping broker.", "ServerConfigs", until=_3_9),
    long("controlled.shutdown.retry.backoff.ms", 5000, "Pause between those tries.", "ServerConfigs", until=_3_9),
    whole(
        "leader.imbalance.per.broker.percentage",
        10,
        "Share of leaders off their preferred broker at which the ZooKeeper controller acts.",
        "ReplicationConfigs",
        until=_3_9,
    ),
    flag(
        "eligible.leader.replicas.enable",
        False,
        "The controller keeps eligible leader replicas; a feature of the cluster since 4.0.",
        "KRaftConfigs, KIP-966",
        since="3.8",
        until=_3_9,
    ),
    small(
        "offsets.commit.required.acks",
        -1,
        "Acknowledgements that a commit of offsets waits for.",
        "GroupCoordinatorConfig, KIP-1041",
        until=_3_9,
        deprecated="3.8",
    ),
    flag(
        "group.coordinator.new.enable",
        True,
        "The coordinator of KIP-848 serves the groups.",
        "GroupCoordinatorConfig, KIP-848",
        since="3.7",
        until="4.0",
        internal=True,
    ),
    whole(
        "metadata.log.segment.min.bytes",
        8 * MIB,
        "Lower bound of metadata.log.segment.bytes.",
        "KRaftConfigs",
        minimum=12,
        until="4.0",
        internal=True,
    ),
)

REMOVED_TOPICS: Final[tuple[Setting, ...]] = (
    topic_text(
        "message.format.version",
        "3.0-IV1",
        "Format in which a leader writes batches.",
        _FORMAT,
        allowed=_VERSIONS,
        synonyms=("log.message.format.version",),
        until=_3_9,
        deprecated="3.0",
    ),
    topic_long(
        "message.timestamp.difference.max.ms",
        LONG_MAX,
        _DIFFERENCE,
        "TopicConfig, KIP-937",
        minimum=0,
        synonyms=("log.message.timestamp.difference.max.ms",),
        until=_3_9,
        deprecated="3.6",
    ),
    topic_flag(
        "message.downconversion.enable",
        True,
        _DOWN,
        "TopicConfig, KIP-283",
        synonyms=("log.message.downconversion.enable",),
        until=_3_9,
    ),
)
