"""Scenarios of disks: S18, S40, S42, S43, S84, S85 and S91; S18 and S85 are of one log, without a cluster."""

from __future__ import annotations

from functools import partial
from typing import Final

import attrs

from broker.clock import ManualClock
from broker.error_codes import ErrorCode
from broker.ids import BrokerEpoch, BrokerId, LeaderEpoch, Offset
from broker.units import DAY_MS, HOUR_MS, MIB, DurationMs, SizeBytes, TimeMs
from log.batches.build import build_batch
from log.batches.build_spec import BatchSpec
from log.batches.in_buffer import batches_in
from log.log_config import LogConfig
from log.partition.partition_log import PartitionLog
from log.partition.recovery import LastShutdown
from log.record import Record
from log.storage import MemoryStorage
from log.storage.faults import Fault as LogFault
from log.storage.faults import FaultKind as LogFaultKind
from replication.roles.messages import CreateTopic, DeleteTopic
from replication.rules.fencing import StopProof, proof_at_stop, proof_while_loading
from replication.rules.switches import CURRENT, Rules, without
from replication.scenarios.catalogue.common import PATIENT, reassign_and_elect
from replication.scenarios.disk_faults import DiskFault, WrongTopicId
from replication.scenarios.operations import AskController, Crash, FetchFrom, HoldMessages, LosePower, SendRecord
from replication.scenarios.result import ComponentScenario, Fact
from replication.scenarios.scenario import (
    DEFAULT_PARTITION_SETTINGS,
    DEFAULT_ROLE_SETTINGS,
    ExpectedResponses,
    ExpectedState,
    Scenario,
)
from replication.simulation.trace import LineSink

_TWO_DISKS: Final = attrs.evolve(DEFAULT_ROLE_SETTINGS, directory_count=2)
_QUIET: Final = Scenario(name="", title="", how="", source="", producers=0, consumers=0)

_S91: Final = attrs.evolve(
    _QUIET,
    name="S91",
    title="Power fails everywhere and nothing was flushed",
    how="m0 is in the page cache of all three brokers and acknowledged; power fails before it is on disk. Three "
    "replicas lose records, more than min.insync.replicas tolerates.",
    source="KIP-966; Kafka leaves flushing to the operating system",
    operations=(
        SendRecord(5_000, 0),
        *(LosePower(6_000, broker, 20_000, record_count=1) for broker in range(3)),
    ),
    expected_states=(ExpectedState(5_900, logs=((0,), (0,), (0,))), ExpectedState(50_000, logs=((), (), ()))),
    lost_values=(0,),
    is_strict=False,
)

_S42: Final = attrs.evolve(
    _QUIET,
    name="S42",
    title="Topic is deleted and created again while a broker is down",
    how="Broker 2 is down while its topic, with m0, is deleted and another one of the same name is created, with m1. "
    "It comes back with a log of that name: by the topic id the log is a stray and is deleted before anything is "
    "copied.",
    source="KIP-516, KAFKA-14616",
    operations=(
        SendRecord(5_000, 0),
        Crash(6_000, 2, 30_000),
        AskController(20_000, DeleteTopic(0)),
        AskController(20_500, CreateTopic(1, tuple(BrokerId(broker) for broker in range(3)), "topic-0")),
        SendRecord(22_000, 0, partition=1),
    ),
    expected_states=(
        ExpectedState(29_000, partition=1, leader=0, isr=(0, 1), logs=((1,), (1,), ())),
        ExpectedState(59_000, partition=1, leader=0, isr=(0, 1, 2), logs=((1,), (1,), (1,))),
    ),
    is_strict=False,
)

_S43: Final = attrs.evolve(
    _QUIET,
    name="S43",
    title="Log directory with another topic's id",
    how="The partition.metadata file of partition 0 on broker 2 has the id of another topic. Broker 2 neither changes "
    "the log nor follows: the replica is offline, and no records are mixed.",
    source="KAFKA-14190, KAFKA-12835",
    partitions=2,
    operations=(
        SendRecord(5_000, 0),
        Crash(6_000, 2, 20_000),
        WrongTopicId(10_000, 2, 0, 1),
        SendRecord(18_000, 0),
    ),
    expected_states=(
        ExpectedState(40_000, leader=0, isr=(0, 1), logs=((0, 1), (0, 1), ())),
        ExpectedState(40_000, partition=1, leader=1, isr=(1, 0, 2)),
    ),
    breaks=frozenset({"L"}),
    heal_ms_max=DEFAULT_ROLE_SETTINGS.session_ms,
    lost_values=(),
)

_NOW: Final = TimeMs(1)
_DIRECTORY: Final = "topic-0"
_LOG_FILE: Final = f"{_DIRECTORY}/{0:020d}.log"
_TORN_BYTES: Final = 10


def _batch(value: int, stamp_ms: int = _NOW) -> bytes:
    return build_batch(BatchSpec(), (Record(Offset(0), TimeMs(stamp_ms), None, bytes([value])),))


def _torn_log() -> MemoryStorage:
    """Write a log of three records, and tear the end of the third off."""
    storage = MemoryStorage(ManualClock())
    log = PartitionLog.open(storage, _DIRECTORY, LogConfig(), LastShutdown(), now_ms=_NOW)
    for value in range(3):
        log.append_as_leader(_batch(value), leader_epoch=LeaderEpoch(0), now_ms=_NOW)
    storage.open(_LOG_FILE).truncate(storage.size_bytes(_LOG_FILE) - _TORN_BYTES)
    return storage


def _stopped_while_recovering(on_line: LineSink, rules: Rules) -> tuple[Fact, ...]:
    """Tear a log's end off, stop the broker during recovery, restart it and append."""
    storage = _torn_log()
    on_line("records 0, 1 and 2 are written; power fails and tears the end of the third off")
    found = proof_while_loading(StopProof(), rules)
    found = proof_at_stop(BrokerEpoch(7), logs_recovered=False, rules=rules)
    is_clean = found.epoch is not None
    on_line(f"the broker starts and is stopped before its logs are recovered; clean shutdown file written: {is_clean}")
    log = PartitionLog.open(storage, _DIRECTORY, LogConfig(), LastShutdown(clean=is_clean), now_ms=_NOW)
    on_line(f"it starts again; the log ends at {log.log_end_offset}, its file at {storage.size_bytes(_LOG_FILE)}")
    written = log.append_as_leader(_batch(9), leader_epoch=LeaderEpoch(1), now_ms=_NOW)
    on_line(f"another record is written at offset {written.first_offset}")
    return (
        Fact("clean shutdown file written:", str(is_clean)),
        Fact("the record is written at", written.first_offset),
        Fact("bytes sent to readers that belong to no whole batch:", _torn_size(log)),
    )


def _torn_size(log: PartitionLog) -> int:
    """Return how many bytes readers receive from the log's start that belong to no whole batch."""
    records = log.read(log.log_start_offset, MIB).records
    return len(records) - sum(batch.size_bytes for batch in batches_in(records))


def _kept_by_a_clock(on_line: LineSink, ahead_ms: int) -> tuple[Fact, ...]:
    """Apply retention.ms of a day by a correct clock and by one that is ahead; one record has a future timestamp."""
    config = LogConfig(retention_ms=DurationMs(DAY_MS), segment_size_bytes=SizeBytes(100))
    kept = []
    for ahead in (0, ahead_ms):
        log = PartitionLog.open(MemoryStorage(ManualClock()), _DIRECTORY, config, LastShutdown(), now_ms=_NOW)
        for stamp_ms in (0, 2 * HOUR_MS, 3 * DAY_MS, 4 * HOUR_MS):
            log.append_as_leader(_batch(0, stamp_ms), leader_epoch=LeaderEpoch(0), now_ms=TimeMs(stamp_ms))
        log.update_high_watermark(log.log_end_offset)
        now_ms = TimeMs(DAY_MS + HOUR_MS + HOUR_MS // 2 + ahead)
        log.delete_old_segments(now_ms=now_ms)
        on_line(f"a clock {ahead // HOUR_MS} h ahead: the log starts at {log.log_start_offset}")
        kept.append(log.log_start_offset)
        log.delete_old_segments(now_ms=TimeMs(3 * DAY_MS))
        on_line(f"on the third day it starts at {log.log_start_offset}: a future timestamp keeps every later record")
        kept.append(log.log_start_offset)
    return (
        Fact("with a correct clock the log starts at", kept[0]),
        Fact("with the other clock it starts at", kept[2]),
        Fact("on the third day the record with the future timestamp is still at", kept[1]),
    )


def _recovered_beyond_its_end(on_line: LineSink) -> tuple[Fact, ...]:
    """Lose records below the recovery point, and start."""
    storage = _torn_log()
    on_line("three records are written, the recovery point says that all are on disk, and the last one is torn")
    last = LastShutdown(clean=False, recovery_point=Offset(3))
    log = PartitionLog.open(storage, _DIRECTORY, LogConfig(), last, now_ms=_NOW)
    on_line(f"the log ends at {log.log_end_offset}, the recovery point is {log.recovery_point}")
    log.append_as_leader(_batch(9), leader_epoch=LeaderEpoch(1), now_ms=_NOW)
    return (Fact("the recovery point is", log.recovery_point), Fact("and the log ends at", log.log_end_offset))


_OLD: Final = without(CURRENT, "clean_marker_removed_first")
_S18: Final = ComponentScenario(
    name="S18",
    title="Stop during log recovery leaves no clean shutdown file",
    how="A broker loses power, starts, and is stopped before its logs are recovered. No clean shutdown file is "
    "written, and the next start recovers the log.",
    source="KAFKA-10471, KAFKA-15375",
    script=partial(_stopped_while_recovering, rules=CURRENT),
    expected=(
        Fact("clean shutdown file written:", "False"),
        Fact("the record is written at", 2),
        Fact("bytes sent to readers that belong to no whole batch:", 0),
    ),
)

_SINGLE_LOG: Final = (
    _S18,
    ComponentScenario(
        name="S18-before",
        title="Stop during log recovery leaves a clean shutdown file",
        how="As S18, but the stop counts as clean and the next start skips recovery: the torn end stays in the log, "
        "and readers receive it.",
        source=_S18.source,
        script=partial(_stopped_while_recovering, rules=_OLD),
        expected=(
            Fact("clean shutdown file written:", "True"),
            Fact("the record is written at", 2),
            Fact("bytes sent to readers that belong to no whole batch:", 59),
        ),
    ),
    ComponentScenario(
        name="S85",
        title="Recovery point is beyond the log's end",
        how="The checkpoint says that three records are on disk, and one is torn. Recovery truncates the log, lowers "
        "the recovery point to its end, and does not raise it again for later records.",
        source="KAFKA-10101",
        script=_recovered_beyond_its_end,
        expected=(Fact("the recovery point is", 2), Fact("and the log ends at", 3)),
    ),
)

STORAGE: Final = (
    Scenario(
        name="S40",
        title="One of two log directories fails",
        how="The disk of broker 0 that holds partition 0 fails at a write. Partition 0 gets another leader; the "
        "broker goes on with partition 1 and answers KAFKA_STORAGE_ERROR for partition 0.",
        source="KIP-112, KIP-858",
        role_settings=_TWO_DISKS,
        partitions=2,
        operations=(
            DiskFault(5_000, 0, LogFault("disk-0/*.log", LogFaultKind.NO_SPACE), 60_000),
            FetchFrom(20_000, 0, 0),
            FetchFrom(20_000, 0, 0, partition=1),
            Crash(40_000, 0, 41_000),
        ),
        expected_states=(
            ExpectedState(4_900, leader=0, isr=(0, 1, 2)),
            ExpectedState(20_000, leader=1, isr=(1, 2)),
            ExpectedState(20_000, partition=1, leader=1, isr=(1, 2, 0)),
            ExpectedState(59_000, leader=1, isr=(1, 2, 0)),
        ),
        expected_responses=(
            ExpectedResponses("ConsumerFetchResponse", ErrorCode.KAFKA_STORAGE_ERROR),
            ExpectedResponses("ProduceResponse", ErrorCode.KAFKA_STORAGE_ERROR),
        ),
    ),
    _S42,
    attrs.evolve(
        _S42,
        name="S42-before",
        title="Topic is deleted and created again, without topic ids",
        how="As S42 with names only: m0 of the old topic passes for a record of the new one.",
        settings=attrs.evolve(DEFAULT_PARTITION_SETTINGS, rules=without(CURRENT, "topic_id_check")),
        expected_states=(
            _S42.expected_states[0],
            ExpectedState(59_000, partition=1, leader=0, isr=(0, 1, 2), logs=((1,), (1,), (0,))),
        ),
        breaks=frozenset({"I11"}),
    ),
    _S43,
    attrs.evolve(
        _S43,
        name="S43-before",
        title="Log directory with another topic's id, unchecked",
        how="As S43 without the check: broker 2 goes on with the log that has the name.",
        settings=attrs.evolve(DEFAULT_PARTITION_SETTINGS, rules=without(CURRENT, "topic_id_check")),
        expected_states=(ExpectedState(40_000, leader=0, isr=(0, 1, 2), logs=((0, 1), (0, 1), (0, 1))),),
        breaks=frozenset(),
    ),
    attrs.evolve(
        _QUIET,
        name="S84",
        title="Epoch checkpoint is ahead of the log",
        how="Broker 1 leads a new epoch and writes its start offset to disk; power fails, and the only record of it "
        "is lost. Broker 1 comes back with the log as it was before, and copies the records of the others.",
        source="KAFKA-16541, Kafka LogLoader",
        role_settings=PATIENT,
        operations=(
            SendRecord(5_000, 0),
            HoldMessages(5_590, 30_000, "Fetch", sender=0),
            HoldMessages(5_590, 30_000, "Fetch", sender=2),
            *reassign_and_elect(5_600, 1, 0, 2),
            SendRecord(5_700, 1),
            LosePower(5_800, 1, 30_000, record_count=1),
            SendRecord(20_000, 0),
            HoldMessages(29_900, 40_000, "FetchResponse", receiver=1),
        ),
        expected_states=(
            ExpectedState(5_790, leader=1, leader_epoch=1, logs=((0,), (0, 1), (0,))),
            ExpectedState(35_000, leader=0, leader_epoch=2, logs=((0, 2), (0,), (0, 2))),
            ExpectedState(59_000, leader=0, isr=(0, 2, 1), logs=((0, 2), (0, 2), (0, 2))),
        ),
        lost_values=(),
    ),
    _S91,
    *_SINGLE_LOG,
)
