"""List the settings of logs: the broker's defaults for all topics, and the topic settings that override them.

Every topic setting lists the broker settings that hold where the topic says nothing, the first that
is set wins; of those, Kafka has some in hours or minutes, which `Settings.duration_ms` converts.

Left out: the settings of remote storage but those that a topic may have; the lists of throttled replicas, which are
part of a reassignment, not of a log. What was removed stands in `removed`, what was otherwise in `changes`.

Source: Kafka 4.3.1, the classes named in each row, and ServerTopicConfigSynonyms.
"""

from __future__ import annotations

from typing import Final

from broker.config.build import (
    flag,
    long,
    real,
    text,
    texts,
    topic_flag,
    topic_long,
    topic_real,
    topic_text,
    topic_texts,
    topic_whole,
    whole,
)
from broker.config.setting import LONG_MAX, Setting
from broker.units import GIB, KIB, MIB

_LOG: Final = "LogConfig"
_SERVER: Final = "ServerLogConfigs"
_CLEANER: Final = "CleanerConfig"
_CODECS: Final = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
_STAMPS: Final = ("CreateTime", "LogAppendTime")
_POLICIES: Final = ("compact", "delete")
_LEVELS: Final = (("gzip", -1, 1, 9, -1), ("lz4", 9, 1, 17, None), ("zstd", 3, -(2**17), 22, None))
_DOUBLE_MAX: Final = 1.7976931348623157e308  # Java's Double.MAX_VALUE: no limit.

BROKER_LOGS: Final[tuple[Setting, ...]] = (
    whole(
        "log.segment.bytes",
        GIB,
        "A segment is closed before it grows beyond this.",
        f"{_SERVER}, KIP-1030",
        minimum=MIB,
    ),
    long("log.roll.ms", None, "A segment is closed at this age.", _SERVER),
    whole("log.roll.hours", 168, "The same in hours, where log.roll.ms is not set.", _SERVER, minimum=1),
    long("log.roll.jitter.ms", None, "At most so much is taken off that age, drawn for each segment.", _SERVER),
    whole("log.roll.jitter.hours", 0, "The same in hours, where log.roll.jitter.ms is not set.", _SERVER, minimum=0),
    whole(
        "log.index.size.max.bytes", 10 * MIB, "A segment is closed when its index has this size.", _SERVER, minimum=4
    ),
    whole(
        "log.index.interval.bytes", 4096, "Bytes appended between two entries of the offset index.", _SERVER, minimum=0
    ),
    long(
        "log.retention.bytes",
        -1,
        "A partition's oldest segments beyond this size are deleted; -1 keeps all.",
        _SERVER,
    ),
    long("log.retention.ms", None, "Segments older than this are deleted; -1 keeps all.", _SERVER),
    whole(
        "log.retention.minutes",
        None,
        "The same in minutes, where log.retention.ms is not set.",
        _SERVER,
    ),
    whole("log.retention.hours", 168, "The same in hours, where neither of the two is set.", _SERVER),
    long(
        "log.retention.check.interval.ms",
        300_000,
        "How often segments to delete are looked for.",
        _SERVER,
        minimum=1,
    ),
    long(
        "log.initial.task.delay.ms",
        30_000,
        "The first look, after the broker has started.",
        f"{_SERVER}, KAFKA-14936",
        minimum=0,
        internal=True,
    ),
    long("log.segment.delete.delay.ms", 60_000, "A deleted segment's files stay so long.", _SERVER, minimum=0),
    texts(
        "log.cleanup.policy",
        ("delete",),
        "Old segments are deleted, compacted, or both.",
        f"{_SERVER}, KIP-71",
        allowed=_POLICIES,
    ),
    long("log.flush.interval.messages", LONG_MAX, "Records after which a log is forced to disk.", _SERVER, minimum=1),
    long("log.flush.interval.ms", None, "Age of an unflushed record at which its log is forced to disk.", _SERVER),
    long("log.flush.scheduler.interval.ms", LONG_MAX, "How often logs to force to disk are looked for.", _SERVER),
    whole(
        "log.flush.offset.checkpoint.interval.ms", 60_000, "How often recovery points are written.", _SERVER, minimum=0
    ),
    whole(
        "log.flush.start.offset.checkpoint.interval.ms",
        60_000,
        "How often log start offsets are written.",
        f"{_SERVER}, KIP-107",
        minimum=0,
    ),
    flag("log.preallocate", False, "A new segment's file is given its full size at once.", _SERVER),
    text(
        "log.message.timestamp.type",
        "CreateTime",
        "Whose clock stamps a record: the producer's or the broker's.",
        f"{_SERVER}, KIP-32",
        allowed=_STAMPS,
    ),
    long(
        "log.message.timestamp.before.max.ms",
        LONG_MAX,
        "A record stamped further in the past is refused.",
        f"{_SERVER}, KIP-937",
        minimum=0,
        since="3.6",
    ),
    long(
        "log.message.timestamp.after.max.ms",
        3_600_000,
        "A record stamped further in the future is refused.",
        f"{_SERVER}, KIP-937, KIP-1030",
        minimum=0,
        since="3.6",
    ),
    text(
        "compression.type",
        "producer",
        "How batches are stored; producer keeps them as they came.",
        "ServerConfigs",
        allowed=_CODECS,
    ),
    *(
        whole(
            f"compression.{codec}.level",
            default,
            f"Level of {codec} where the broker compresses anew.",
            "ServerConfigs, KIP-390",
            minimum=minimum,
            maximum=maximum,
            besides=besides,
            since="3.8",
        )
        for codec, default, minimum, maximum, besides in _LEVELS
    ),
    whole(
        "num.recovery.threads.per.data.dir",
        2,
        "Threads that load and flush one directory.",
        f"{_SERVER}, KIP-1030",
        minimum=1,
    ),
    long(
        "log.local.retention.bytes",
        -2,
        "Local part of a tiered log, by size; -2 takes the retention.",
        "RemoteLogManagerConfig, KIP-405",
        minimum=-2,
        since="3.6",
    ),
    long(
        "log.local.retention.ms",
        -2,
        "Local part of a tiered log, by age; -2 takes the retention.",
        "RemoteLogManagerConfig, KIP-405",
        minimum=-2,
        since="3.6",
    ),
    flag("log.cleaner.enable", True, "The cleaner runs.", _CLEANER, deprecated="4.1"),
    whole("log.cleaner.threads", 1, "Threads that compact.", _CLEANER, minimum=0),
    long("log.cleaner.dedupe.buffer.size", 128 * MIB, "Memory of all threads' key maps.", _CLEANER),
    real("log.cleaner.io.buffer.load.factor", 0.9, "How full a key map may get.", _CLEANER),
    whole(
        "log.cleaner.io.buffer.size", 512 * KIB, "Memory of all threads' read and write buffers.", _CLEANER, minimum=0
    ),
    real("log.cleaner.io.max.bytes.per.second", _DOUBLE_MAX, "What all threads together read and write.", _CLEANER),
    long("log.cleaner.backoff.ms", 15_000, "A thread's pause when nothing is dirty enough.", _CLEANER, minimum=0),
    real(
        "log.cleaner.min.cleanable.ratio",
        0.5,
        "Dirty share of a log at which it is compacted.",
        _CLEANER,
        minimum=0,
        maximum=1,
    ),
    long(
        "log.cleaner.delete.retention.ms",
        86_400_000,
        "How long a tombstone stays after compaction.",
        _CLEANER,
        minimum=0,
    ),
    long(
        "log.cleaner.min.compaction.lag.ms",
        0,
        "A record stays uncompacted at least so long.",
        f"{_CLEANER}, KIP-58",
        minimum=0,
    ),
    long(
        "log.cleaner.max.compaction.lag.ms",
        LONG_MAX,
        "A record becomes due for compaction after this time.",
        f"{_CLEANER}, KIP-354",
        minimum=1,
    ),
)

TOPICS: Final[tuple[Setting, ...]] = (
    topic_whole(
        "segment.bytes",
        GIB,
        "A segment is closed before it grows beyond this.",
        f"{_LOG}, KIP-1030",
        minimum=MIB,
        synonyms=("log.segment.bytes",),
    ),
    topic_whole(
        "internal.segment.bytes",
        None,
        "The same without the lower bound, for Kafka's own tests.",
        _LOG,
        since="4.1",
        internal=True,
    ),
    topic_long(
        "segment.ms",
        604_800_000,
        "A segment is closed at this age.",
        _LOG,
        minimum=1,
        synonyms=("log.roll.ms", "log.roll.hours"),
    ),
    topic_long(
        "segment.jitter.ms",
        0,
        "At most so much is taken off that age.",
        _LOG,
        minimum=0,
        synonyms=("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ),
    topic_whole(
        "segment.index.bytes",
        10 * MIB,
        "A segment is closed when its index has this size.",
        _LOG,
        minimum=4,
        synonyms=("log.index.size.max.bytes",),
    ),
    topic_long(
        "flush.messages",
        LONG_MAX,
        "Records after which the log is forced to disk.",
        _LOG,
        minimum=1,
        synonyms=("log.flush.interval.messages",),
    ),
    topic_long(
        "flush.ms",
        LONG_MAX,
        "Age of an unflushed record at which it is.",
        _LOG,
        minimum=0,
        synonyms=("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    ),
    topic_long(
        "retention.bytes",
        -1,
        "A partition's oldest segments beyond this size are deleted; -1 keeps all.",
        _LOG,
        synonyms=("log.retention.bytes",),
    ),
    topic_long(
        "retention.ms",
        604_800_000,
        "Segments older than this are deleted; -1 keeps all.",
        _LOG,
        minimum=-1,
        synonyms=("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    ),
    topic_long(
        "local.retention.bytes",
        -2,
        "Local part of a tiered log, by size; -2 takes the retention.",
        f"{_LOG}, KIP-405",
        minimum=-2,
        synonyms=("log.local.retention.bytes",),
        since="3.6",
    ),
    topic_long(
        "local.retention.ms",
        -2,
        "Local part of a tiered log, by age; -2 takes the retention.",
        f"{_LOG}, KIP-405",
        minimum=-2,
        synonyms=("log.local.retention.ms",),
        since="3.6",
    ),
    topic_flag(
        "remote.storage.enable", False, "Closed segments also go to remote storage.", f"{_LOG}, KIP-405", since="3.6"
    ),
    topic_flag(
        "remote.log.copy.disable",
        False,
        "No more segments go to remote storage, which is read only.",
        f"{_LOG}, KIP-950",
        since="3.9",
    ),
    topic_flag(
        "remote.log.delete.on.disable",
        False,
        "Remote segments are deleted when remote storage is turned off.",
        f"{_LOG}, KIP-950",
        since="3.9",
    ),
    topic_whole(
        "max.message.bytes",
        MIB + 12,
        "Greatest batch that is appended, 12 bytes of framing included.",
        _LOG,
        minimum=0,
        synonyms=("message.max.bytes",),
    ),
    topic_whole(
        "index.interval.bytes",
        4096,
        "Bytes appended between two entries of the offset index.",
        _LOG,
        minimum=0,
        synonyms=("log.index.interval.bytes",),
    ),
    topic_long(
        "file.delete.delay.ms",
        60_000,
        "A deleted segment's files stay so long.",
        _LOG,
        minimum=0,
        synonyms=("log.segment.delete.delay.ms",),
    ),
    topic_texts(
        "cleanup.policy",
        ("delete",),
        "Old segments are deleted, compacted, or both.",
        f"{_LOG}, KIP-71",
        allowed=_POLICIES,
        synonyms=("log.cleanup.policy",),
    ),
    topic_long(
        "delete.retention.ms",
        86_400_000,
        "How long a tombstone stays after compaction.",
        _LOG,
        minimum=0,
        synonyms=("log.cleaner.delete.retention.ms",),
    ),
    topic_long(
        "min.compaction.lag.ms",
        0,
        "A record stays uncompacted at least so long.",
        f"{_LOG}, KIP-58",
        minimum=0,
        synonyms=("log.cleaner.min.compaction.lag.ms",),
    ),
    topic_long(
        "max.compaction.lag.ms",
        LONG_MAX,
        "A record becomes due for compaction after this time.",
        f"{_LOG}, KIP-354",
        minimum=1,
        synonyms=("log.cleaner.max.compaction.lag.ms",),
    ),
    topic_real(
        "min.cleanable.dirty.ratio",
        0.5,
        "Dirty share of the log at which it is compacted.",
        _LOG,
        minimum=0,
        maximum=1,
        synonyms=("log.cleaner.min.cleanable.ratio",),
    ),
    topic_whole(
        "min.insync.replicas",
        1,
        "In-sync replicas that a write with acks=all needs.",
        _LOG,
        minimum=1,
        synonyms=("min.insync.replicas",),
    ),
    topic_flag(
        "unclean.leader.election.enable",
        False,
        "A replica outside the ISR may lead when no other can.",
        f"{_LOG}, KIP-106",
        synonyms=("unclean.leader.election.enable",),
    ),
    topic_text(
        "compression.type",
        "producer",
        "How batches are stored; producer keeps them as they came.",
        _LOG,
        allowed=_CODECS,
        synonyms=("compression.type",),
    ),
    *(
        topic_whole(
            f"compression.{codec}.level",
            default,
            f"Level of {codec} where the leader compresses anew.",
            f"{_LOG}, KIP-390",
            minimum=minimum,
            maximum=maximum,
            besides=besides,
            synonyms=(f"compression.{codec}.level",),
            since="3.8",
        )
        for codec, default, minimum, maximum, besides in _LEVELS
    ),
    topic_flag(
        "preallocate",
        False,
        "A new segment's file is given its full size at once.",
        _LOG,
        synonyms=("log.preallocate",),
    ),
    topic_text(
        "message.timestamp.type",
        "CreateTime",
        "Whose clock stamps a record: the producer's or the broker's.",
        f"{_LOG}, KIP-32",
        allowed=_STAMPS,
        synonyms=("log.message.timestamp.type",),
    ),
    topic_long(
        "message.timestamp.before.max.ms",
        LONG_MAX,
        "A record stamped further in the past is refused.",
        f"{_LOG}, KIP-937",
        minimum=0,
        synonyms=("log.message.timestamp.before.max.ms",),
        since="3.6",
    ),
    topic_long(
        "message.timestamp.after.max.ms",
        3_600_000,
        "A record stamped further in the future is refused.",
        f"{_LOG}, KIP-937, KIP-1030",
        minimum=0,
        synonyms=("log.message.timestamp.after.max.ms",),
        since="3.6",
    ),
)
